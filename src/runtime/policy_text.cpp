#include "runtime/policy_text.hpp"

#include <filesystem>
#include <span>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "config/policy_reader.hpp"

namespace opmux::runtime {
namespace {

std::string sha256_of(std::string_view text) {
  return base::sha256_hex(std::as_bytes(std::span(text)));
}

/// Moves a setting of one file to the merged policy; false if an earlier file has set it.
template <class T>
bool take(T& into, T& from) {
  if (from == T()) return true;
  if (into != T()) return false;
  into = std::move(from);
  return true;
}

Status join(Policy& whole, Policy part, const std::string& path) {
  const auto twice = [&](std::string_view key) {
    return Status(Code::invalid_argument, "policy.said_twice",
                  base::concat(path, ":1:1: ", key,
                               " is already set in an earlier file; only one file may set it"));
  };
  if (!take(whole.prefer, part.prefer)) return twice("defaults.prefer");
  if (!take(whole.allow, part.allow)) return twice("defaults.allow");
  if (!take(whole.strict, part.strict)) return twice("defaults.strict");
  if (!take(whole.transforms, part.transforms)) return twice("defaults.transforms");
  if (!take(whole.breaker, part.breaker)) return twice("breaker");
  if (!take(whole.shadow, part.shadow)) return twice("shadow");
  whole.strict_names = whole.strict_names || part.strict_names;
  for (Rule& rule : part.rules) whole.rules.push_back(std::move(rule));
  return {};
}

}  // namespace

Result<Policy> parse_files(const std::vector<config::FileText>& files,
                           const registry::RegistrySnapshot& registry) {
  if (files.size() == 1) return config::parse_policy(files[0].text, files[0].path, &registry);
  Policy whole;
  for (const config::FileText& file : files) {
    auto part = config::parse_policy(file.text, file.path, &registry);
    if (!part) return part;
    if (Status status = join(whole, std::move(*part), file.path); !status.ok()) return status;
  }
  return whole;
}

std::string digest_of(const std::vector<config::FileText>& files) {
  if (files.size() == 1) return sha256_of(files[0].text);
  std::string lines;
  for (const config::FileText& file : files) {
    const std::string name = std::filesystem::path(file.path).filename();
    lines += base::concat(sha256_of(file.text), "  ", name, "\n");
  }
  return sha256_of(lines);
}

}  // namespace opmux::runtime
