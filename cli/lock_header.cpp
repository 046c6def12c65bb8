#include "cli/lock_header.hpp"

#include <cctype>
#include <map>

#include "base/text.hpp"

namespace opmux::cli {
namespace {

constexpr std::string_view kStart =
    R"(// Constants of an opmux lockfile. Generated; do not edit.
#pragma once

#include <opmux/opmux.hpp>

#include <array>
#include <string>
#include <string_view>

namespace @SPACE@ {

/// The implementation that runs for one class of calls.
struct Choice {
  std::string_view op, when, implementation, build_id, schema_hash;
};

)";

constexpr std::string_view kEnd = R"(
/// The lockfile with these choices.
inline opmux::Lockfile lockfile() {
  opmux::Lockfile lock;
  lock.policy_hash = kPolicyHash;
  for (const Choice& choice : kChoices) {
    lock.choices.push_back({std::string(choice.op), std::string(choice.when),
                            std::string(choice.implementation), std::string(choice.build_id),
                            std::string(choice.schema_hash)});
  }
  return lock;
}

/// Call this when a program starts. Checks that a runtime can make all these choices; otherwise
/// the reason is "lock.misfit" and the message lists all differences.
inline opmux::Status check(const opmux::Runtime& runtime) {
  return runtime.lockfile().check(lockfile(), "@SPACE@");
}

/// Call this after binding a plan. Checks that the plan runs the locked implementation; otherwise
/// the reason is "lock.plan".
inline opmux::Status check(const opmux::Plan& plan, const Choice& choice) {
  if (plan.implementation() == choice.implementation) return {};
  return {opmux::Code::failed, "lock.plan",
          "the plan runs " + plan.implementation() + ", but " +
              std::string(choice.implementation) + " was locked when " + std::string(choice.when)};
}

}  // namespace @SPACE@
)";

std::string with_space(std::string_view text, std::string_view name_space) {
  constexpr std::string_view kMark = "@SPACE@";
  std::string result(text);
  for (size_t at = result.find(kMark); at != std::string::npos; at = result.find(kMark, at)) {
    result.replace(at, kMark.size(), name_space);
  }
  return result;
}

/// "kRmsNorm" for "rms_norm", "kAcmeScan" for "acme.scan".
std::string constant_of(std::string_view op) {
  std::string name = "k";
  bool upper = true;
  for (const char c : op) {
    if (c == '_' || c == '.') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name;
}

std::string literal_of(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

std::string header_of(const Lockfile& lock, std::string_view name_space) {
  std::string text = with_space(kStart, name_space);
  text += base::concat(
      "inline constexpr std::string_view kPolicyHash = ", literal_of(lock.policy_hash), ";\n");
  text += base::concat("inline constexpr std::string_view kDigest =\n    ",
                       literal_of(lock.digest()), ";  // of the lockfile\n\n");
  std::map<std::string, int> numbers;
  std::string all;
  for (const LockedChoice& choice : lock.choices) {
    const std::string name = base::concat(constant_of(choice.op), ++numbers[choice.op]);
    text += base::concat("inline constexpr Choice ", name, "{\n    ", literal_of(choice.op),
                         ",\n    ", literal_of(choice.when), ",\n    ",
                         literal_of(choice.implementation), ",\n    ", literal_of(choice.build_id),
                         ",\n    ", literal_of(choice.schema_hash), "};\n");
    all += base::concat(all.empty() ? "" : ", ", name);
  }
  text += base::concat("\ninline constexpr std::array<Choice, ", lock.choices.size(), "> kChoices{",
                       all, "};\n");
  return text + with_space(kEnd, name_space);
}

}  // namespace opmux::cli
