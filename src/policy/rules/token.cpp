#include "policy/rules/token.hpp"

#include <cstring>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"
#include "registry/implementation/implementation_id.hpp"
#include "schema/schema.hpp"

namespace opmux::policy {
namespace {

constexpr std::array<std::string_view, 5> kWords{"default", "vendor", "reference", "flaggems",
                                                 "flagos"};
constexpr std::array<std::string_view, 2> kPrefixes{"vendor", "impl"};
constexpr std::array<std::string_view, 3> kKindWords{"default", "vendor", "reference"};
constexpr std::string_view kForms =
    "valid tokens are default, vendor, reference, vendor:NAME, impl:ID and patterns with '/'";

std::optional<Kind> kind_of(std::string_view word) {
  if (word == "default" || word == "flaggems" || word == "flagos") return Kind::default_;
  if (word == "vendor") return Kind::vendor;
  if (word == "reference") return Kind::reference;
  return std::nullopt;
}

Status refuse(std::string_view text, std::string_view why) {
  return {Code::invalid_argument, "policy.token", base::concat("token '", text, "': ", why)};
}

Status unknown_word(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view head = text.substr(0, colon);
  std::string near;
  if (colon == text.npos) {
    near = base::nearest(head, kWords);
  } else if (const auto prefix = base::nearest(head, kPrefixes); !prefix.empty()) {
    near = base::concat(prefix, text.substr(colon));
  }
  const std::string hint = near.empty() ? "" : base::concat("; did you mean '", near, "'?");
  return refuse(text, base::concat("unknown word", hint, " (", kForms, ")"));
}

bool pattern_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '*';
}

constexpr size_t kLongestPattern = 2 * 64 + 1;  // one side: two names and a dot

bool has_star(std::string_view text) { return text.find('*') != text.npos; }

bool pattern_side(std::string_view side) {
  return !side.empty() && side.size() <= kLongestPattern &&
         std::all_of(side.begin(), side.end(), pattern_character);
}

/// Why a pattern with '/' can never match; empty if it can.
std::string pattern_problem(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view op = text.substr(0, slash), impl = text.substr(slash + 1);
  if (!valid_operator_pattern(op))
    return "the part before '/' is neither an operator nor a pattern";
  if (!pattern_side(impl)) return "the part after '/' is neither provider.variant nor a pattern";
  if (has_star(impl)) return {};
  if (registry::parse_implementation_id(base::concat("op/", impl))) return {};
  const std::string all = base::concat(op, "/", impl, ".*");
  return base::concat("the part after '/' must be provider.variant",
                      schema::valid_name(impl) ? base::concat("; did you mean '", all, "'?") : "");
}

/// Matches one part between slashes. The pieces between stars are found from left to right.
bool match_part(std::string_view pattern, std::string_view text) {
  size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  while ((star = pattern.find('*')) != pattern.npos) {
    const void* found = memmem(text.data(), text.size(), pattern.data(), star);
    if (found == nullptr) return false;
    text.remove_prefix(static_cast<size_t>(static_cast<const char*>(found) - text.data()) + star);
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

std::string_view take_part(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view part = rest.substr(0, slash);
  rest = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
  return part;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  const auto slashes = std::count(pattern.begin(), pattern.end(), '/');
  if (slashes != std::count(text.begin(), text.end(), '/')) return false;
  for (auto part = slashes; part >= 0; --part) {
    if (!match_part(take_part(pattern), take_part(text))) return false;
  }
  return true;
}

bool valid_operator_pattern(std::string_view pattern) {
  return has_star(pattern) ? pattern_side(pattern) : schema::valid_operator_name(pattern);
}

Result<Token> Token::parse(std::string_view text) {
  Token token;
  token.text_ = text;
  if (const auto kind = kind_of(text)) {
    token.kind_ = *kind;
  } else if (text.starts_with("vendor:")) {
    token.what_ = What::vendor;
    token.pattern_ = text.substr(sizeof("vendor:") - 1);
    if (!schema::valid_name(token.pattern_)) {
      return refuse(text, "a vendor name must be [a-z][a-z0-9_]* of at most 64 bytes");
    }
  } else if (text.starts_with("impl:")) {
    token.what_ = What::glob;
    token.pattern_ = text.substr(sizeof("impl:") - 1);
    const auto id = registry::parse_implementation_id(token.pattern_);
    if (!id) return refuse(text, id.error().message());
  } else if (text.find('/') != text.npos && text.find(':') == text.npos) {
    token.what_ = What::glob;
    token.pattern_ = text;
    const std::string problem = pattern_problem(text);
    if (!problem.empty()) return refuse(text, problem);
  } else {
    return unknown_word(text);
  }
  token.slash_ = token.pattern_.find('/');
  return token;
}

bool Token::matches(const Subject& subject) const {
  switch (what_) {
    case What::kind: return subject.kind == kind_;
    case What::vendor: return subject.kind == Kind::vendor && subject.vendor == pattern_;
    case What::glob: break;
  }
  const size_t slash = subject.id.find('/');
  if (slash == subject.id.npos) return false;
  const std::string_view pattern(pattern_);
  return match_part(pattern.substr(0, slash_), subject.id.substr(0, slash)) &&
         match_part(pattern.substr(slash_ + 1), subject.id.substr(slash + 1));
}

std::vector<std::string> expand_prefer(const std::vector<std::string>& tokens) {
  if (tokens.size() != 1) return tokens;
  const auto kind = kind_of(tokens.front());
  if (!kind) return tokens;
  std::vector<std::string> list = tokens;
  for (const std::string_view word : kKindWords) {
    if (kind_of(word) != kind) list.emplace_back(word);
  }
  return list;
}

}  // namespace opmux::policy
