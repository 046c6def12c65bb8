#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

namespace opmux::policy {

/// The properties of an implementation that tokens match. `vendor:NAME` also requires kind vendor.
struct Subject {
  std::string_view id;
  Kind kind = Kind::vendor;
  std::string_view vendor;
};

/// One word of a policy list: default, vendor, reference, vendor:NAME, impl:ID, or a glob with '/'.
class Token {
 public:
  /// Fails with `invalid_argument`, "policy.token" for an unknown word and suggests the nearest
  /// one.
  static Result<Token> parse(std::string_view text);

  bool matches(const Subject& subject) const;
  const std::string& text() const { return text_; }

 private:
  enum class What { kind, vendor, glob };
  What what_ = What::kind;
  Kind kind_ = Kind::default_;
  std::string pattern_;  ///< vendor name or glob
  size_t slash_ = 0;     ///< position of '/' in a glob
  std::string text_;
};

/// `*` matches any run of characters other than '/'. Linear in both lengths.
bool glob_match(std::string_view pattern, std::string_view text);

/// Whether a pattern over operators is well formed: an operator's name, or a name with `*`.
bool valid_operator_pattern(std::string_view pattern);

/// Expands a `prefer` list that consists of one kind word (`vendor`, `default` or `reference`) to
/// that kind followed by the others in built-in order. Returns other lists unchanged.
std::vector<std::string> expand_prefer(const std::vector<std::string>& tokens);

}  // namespace opmux::policy
