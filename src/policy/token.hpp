#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

namespace opmux::policy {

/// What of an implementation a token can match. `vendor:NAME` asks for kind vendor too.
struct Subject {
  std::string_view id;
  Kind kind = Kind::vendor;
  std::string_view vendor;
};

/// One word of a policy list: default, vendor, reference, vendor:NAME, impl:ID, or a glob with '/'.
class Token {
 public:
  /// Unknown words fail (`invalid_argument`, "policy.token") and suggest the nearest.
  static Result<Token> parse(std::string_view text);

  bool matches(const Subject& subject) const;
  const std::string& text() const { return text_; }

 private:
  enum class What { kind, vendor, glob };
  What what_ = What::kind;
  Kind kind_ = Kind::default_;
  std::string pattern_;  ///< vendor's name, or glob
  size_t slash_ = 0;     ///< where it is in a glob
  std::string text_;
};

/// `*` matches any run of characters other than '/'. Linear in both lengths.
bool glob_match(std::string_view pattern, std::string_view text);

/// Whether a pattern over operators is well formed: a name, or one with `*` in it.
bool valid_operator_pattern(std::string_view pattern);

/// The list a single `vendor` (or `default`, `reference`) stands for in `prefer`: that kind first,
/// then the others in built-in order. Longer lists are taken as they are.
std::vector<std::string> expand_prefer(const std::vector<std::string>& tokens);

}  // namespace opmux::policy
