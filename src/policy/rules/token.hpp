#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

#include "registry/snapshot.hpp"

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

/// Calls `visit(name, record)` for each operator that a rule's `op` matches, in order of name,
/// until one call returns true. Returns whether one did. Looks up names without '*', because policy
/// files can have thousands of rules.
template <class Visit>
bool any_operator_of(std::string_view op, const registry::RegistrySnapshot& known, Visit&& visit) {
  if (op.find('*') == op.npos) {
    const auto* const found = known.operators.find(op);
    return found != nullptr && visit(found->first, *found->second);
  }
  for (const auto& [name, record] : known.operators) {
    if (glob_match(op, name) && visit(name, *record)) return true;
  }
  return false;
}

}  // namespace opmux::policy
