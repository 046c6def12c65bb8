#include <opmux/policy.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "base/crypto.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "policy/files/policy_files.hpp"
#include "registry/implementation/implementation_id.hpp"

namespace opmux {
namespace {

constexpr std::string_view kTitle = "opmux lockfile 1";
constexpr size_t kMostChoices = 100'000;

std::string line_of(const LockedChoice& choice) {
  return base::concat("lock ", choice.implementation, " build ",
                      choice.build_id.empty() ? "-" : choice.build_id, " schema ",
                      choice.schema_hash, " when ", choice.when);
}

std::string body_of(const Lockfile& lock) {
  std::vector<std::string> lines;
  lines.reserve(lock.choices.size());
  for (const LockedChoice& choice : lock.choices) lines.push_back(line_of(choice));
  std::sort(lines.begin(), lines.end());
  std::string body = base::concat(kTitle, "\npolicy ", lock.policy_hash, "\n");
  for (const std::string& line : lines) body += line + "\n";
  return body;
}

std::string sha256_of(std::string_view text) {
  return base::sha256_hex(std::as_bytes(std::span(text)));
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Key of a class of calls: operator and condition (`when`).
using ClassName = std::pair<std::string, std::string>;

/// Parses a lockfile line by line; errors name the line.
class Reader {
 public:
  Reader(std::string_view text, std::string_view name)
      : rest_(text), name_(name), ends_well_(text.ends_with('\n')) {}

  Result<Lockfile> read() {
    Lockfile lock;
    if (next_line() != kTitle)
      return wrong("this is not a lockfile: it does not begin with '", kTitle);
    if (!take(next_line(), "policy ", lock.policy_hash) || !is_hex(lock.policy_hash, 16)) {
      return wrong("the hash of the policy is missing", "");
    }
    std::string digest;
    for (;;) {
      const std::string_view line = next_line();
      if (take(line, "sha256 ", digest)) break;
      LockedChoice choice;
      if (!read_choice(line, choice)) {
        return wrong("this line is neither a choice nor the digest: '", line.substr(0, 80));
      }
      if (lock.choices.size() == kMostChoices) return wrong("there are too many choices", "");
      if (!classes_.emplace(choice.op, choice.when).second) {
        return wrong("an earlier line is for the same calls: '", line.substr(0, 80));
      }
      lock.choices.push_back(std::move(choice));
    }
    if (!rest_.empty()) return wrong("there is text after the digest", "");
    if (!ends_well_) return wrong("the last line has no newline", "");
    const std::string found = lock.digest();
    if (!found.empty() && found != digest) {
      return wrong("the file was changed after it was written: its SHA-256 is not '", digest);
    }
    return lock;
  }

 private:
  std::string_view next_line() {
    ++line_;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }
  static bool take(std::string_view line, std::string_view key, std::string& into) {
    if (!line.starts_with(key)) return false;
    into = line.substr(key.size());
    return true;
  }
  /// Takes everything up to `end` and skips `end`; returns false if `end` is missing.
  static bool take_until(std::string_view& line, std::string_view end, std::string& into) {
    const size_t at = line.find(end);
    if (at == std::string_view::npos) return false;
    into = line.substr(0, at);
    line.remove_prefix(at + end.size());
    return true;
  }
  static bool read_choice(std::string_view line, LockedChoice& choice) {
    std::string word;
    if (!take_until(line, "lock ", word) || !word.empty()) return false;
    if (!take_until(line, " build ", choice.implementation) ||
        !take_until(line, " schema ", choice.build_id) ||
        !take_until(line, " when ", choice.schema_hash)) {
      return false;
    }
    const auto id = registry::parse_implementation_id(choice.implementation);
    if (!id || choice.build_id.empty() || !is_hex(choice.schema_hash, 16) || line.empty()) {
      return false;
    }
    if (choice.build_id == "-") choice.build_id.clear();
    choice.op = id->op;
    choice.when = line;
    return true;
  }
  Status wrong(std::string_view what, std::string_view quoted) const {
    return {Code::invalid_argument, "lock.text",
            base::concat(name_, ":", line_, ":1: ", what, quoted, quoted.empty() ? "" : "'")};
  }

  std::string_view rest_, name_;
  bool ends_well_;
  int line_ = 0;
  std::set<ClassName> classes_;
};

std::map<ClassName, const LockedChoice*> by_class(const Lockfile& lock) {
  std::map<ClassName, const LockedChoice*> all;
  for (const LockedChoice& choice : lock.choices) all[{choice.op, choice.when}] = &choice;
  return all;
}

}  // namespace

std::string Lockfile::digest() const { return sha256_of(body_of(*this)); }

std::string Lockfile::to_string() const {
  const std::string body = body_of(*this);
  return base::concat(body, "sha256 ", sha256_of(body), "\n");
}

Result<Lockfile> Lockfile::parse(std::string_view text, std::string_view name) {
  return Reader(text, name).read();
}

Result<Lockfile> Lockfile::read(const std::string& path) {
  const auto file = policy::read_policy_file(path);
  if (!file) return file.error();
  return parse(file->text, path);
}

Status Lockfile::write(const std::string& path) const {
  if (base::replace_file(path, to_string(), 0644)) return {};
  return {Code::failed, "lock.write",
          base::concat("cannot write ", path, ": ", std::strerror(errno))};
}

std::vector<ChoiceChange> differences(const Lockfile& from, const Lockfile& to) {
  std::vector<ChoiceChange> changes;
  const auto before = by_class(from);
  const auto after = by_class(to);
  for (const auto& [key, choice] : before) {
    const auto other = after.find(key);
    if (other == after.end()) {
      changes.push_back(
          {key.first, key.second, choice->implementation, "", "only in the first lockfile"});
    } else if (other->second->implementation != choice->implementation) {
      changes.push_back({key.first, key.second, choice->implementation,
                         other->second->implementation, "different implementation"});
    } else if (other->second->build_id != choice->build_id) {
      changes.push_back({key.first, key.second, choice->implementation, choice->implementation,
                         "different build"});
    } else if (other->second->schema_hash != choice->schema_hash) {
      changes.push_back({key.first, key.second, choice->implementation, choice->implementation,
                         "different schema of the operator"});
    }
  }
  for (const auto& [key, choice] : after) {
    if (before.contains(key)) continue;
    changes.push_back(
        {key.first, key.second, "", choice->implementation, "only in the second lockfile"});
  }
  return changes;
}

}  // namespace opmux
