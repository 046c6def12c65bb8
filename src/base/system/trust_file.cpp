#include "base/system/trust_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux {

std::string_view name_of(PolicyTrust trust) noexcept {
  return trust == PolicyTrust::refuse ? "refuse" : "warn";
}

}  // namespace opmux

namespace opmux::base {
namespace {

constexpr size_t kMostBytes = 65536;

Status wrong(std::string_view why) { return {Code::failed, "trust.file", std::string(why)}; }

/// The text without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool set_rule(TrustRules& rules, std::string_view key, std::string_view value) {
  if (key == "policy_trust" && (value == "warn" || value == "refuse")) {
    rules.policy_trust = value == "refuse" ? PolicyTrust::refuse : PolicyTrust::warn;
    return true;
  }
  if (key == "require_confinement" && (value == "yes" || value == "no")) {
    rules.require_confinement = value == "yes";
    return true;
  }
  return false;
}

/// Why a file or folder lets another user decide about the rules; ok if it does not. In a folder
/// with the sticky bit, users can replace only their files.
Status judge(const struct stat& found, const std::string& path, uid_t owner) {
  if (found.st_uid != owner && found.st_uid != 0) {
    return wrong(concat(path, " belongs to user ", found.st_uid));
  }
  const bool sticky_folder = S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0;
  if (!sticky_folder && (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return wrong(path + " can be written by other users; revoke that with chmod go-w");
  }
  return {};
}

Status judge_folders(const std::filesystem::path& path, uid_t owner) {
  for (std::filesystem::path at = path; at.has_relative_path();) {
    at = at.parent_path();
    struct stat found{};
    if (::stat(at.c_str(), &found) != 0) {
      return wrong(concat(at.native(), ": ", std::generic_category().message(errno)));
    }
    if (Status bad = judge(found, at, owner); !bad.ok()) return bad;
  }
  return {};
}

/// The contents of the file after the checks of owner and mode.
Result<std::string> checked_text(const Descriptor& opened, const TrustFile& file) {
  struct stat found{};
  if (::fstat(opened.get(), &found) != 0) return wrong(std::generic_category().message(errno));
  if (!S_ISREG(found.st_mode)) return wrong("it is not a regular file");
  if (found.st_uid != file.owner) return wrong(concat("it belongs to user ", found.st_uid));
  if (Status bad = judge(found, file.path, file.owner); !bad.ok()) return bad;
  if (Status bad = judge_folders(file.path, file.owner); !bad.ok()) return bad;
  return read_whole(opened, file.path, kMostBytes);
}

Result<TrustRules> checked_rules(const Descriptor& opened, const TrustFile& file) {
  if (!opened) return wrong(std::generic_category().message(errno));
  const Result<std::string> text = checked_text(opened, file);
  if (!text) return text.error();
  return parse_trust_rules(*text);
}

}  // namespace

Result<TrustRules> parse_trust_rules(std::string_view text) {
  TrustRules rules;
  std::set<std::string, std::less<>> seen;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    std::string_view rest = trimmed(take_until(line, '#'));
    if (rest.empty()) continue;
    const bool assigned = rest.find('=') != rest.npos;
    const std::string key(trimmed(take_until(rest, '=')));
    const auto bad = [&](std::string_view why) {
      return wrong(concat("line ", number, ": ", why, " '", without_controls(key), "'"));
    };
    if (key != "policy_trust" && key != "require_confinement") return bad("there is no key");
    if (!assigned) return bad("a value is missing for");
    if (!seen.insert(key).second) return bad("a second value for");
    if (!set_rule(rules, key, trimmed(rest))) return bad("a wrong value for");
  }
  return rules;
}

TrustRules read_trust_file(const TrustFile& file) {
  const Descriptor opened(
      ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!opened && errno == ENOENT) return {};
  Result<TrustRules> rules = checked_rules(opened, file);
  if (!rules) {
    const std::string why = concat(
        file.path, " cannot be used, so the strictest rules apply: ", rules.error().message());
    return {PolicyTrust::refuse, true, file.path, wrong(why)};
  }
  rules->file = file.path;
  return *std::move(rules);
}

}  // namespace opmux::base
