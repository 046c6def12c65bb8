#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/token.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// Tests whether tokens match any registered implementation, and caches the results. Not
/// thread-safe; the snapshot must outlive it.
class PresentNames {
 public:
  explicit PresentNames(const registry::RegistrySnapshot& known);

  /// Whether `token` matches an implementation of an operator that `op` matches. Kind words such as
  /// `vendor` always match.
  bool matches(std::string_view op, const std::string& token);

 private:
  struct Present {
    std::string_view op;
    Subject subject;
  };
  std::vector<Present> present_;  ///< sorted by operator
  std::map<std::string, bool, std::less<>> known_;
};

/// A token that matches no registered implementation.
struct Unmatched {
  size_t rule = 0;  ///< position in Policy::rules
  std::string_view field;
  std::string token;
};

/// The unmatched tokens of all rules, in order. Includes those in `deny`, where they are harmless.
std::vector<Unmatched> unmatched_of(const Policy& policy, const registry::RegistrySnapshot& known);

/// Rules that have tokens, none of which match anything, in order.
std::vector<const Rule*> unmatched_rules(const Policy& policy,
                                         const registry::RegistrySnapshot& known);

}  // namespace opmux::policy
