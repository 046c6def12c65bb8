#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/token.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// Answers whether tokens match anything that is registered. Not thread-safe; the snapshot must
/// outlive it.
class PresentNames {
 public:
  explicit PresentNames(const registry::RegistrySnapshot& known);

  /// Whether `token` matches an implementation of an operator that `op` matches. Words for kinds
  /// name nothing that could be absent.
  bool matches(std::string_view op, const std::string& token);

 private:
  struct Present {
    std::string_view op;
    Subject subject;
  };
  std::vector<Present> present_;  ///< by operator
  std::map<std::string, bool, std::less<>> known_;
};

/// A token that names nothing that is present.
struct Unmatched {
  size_t rule = 0;  ///< position in Policy::rules
  std::string_view field;
  std::string token;
};

/// Of all rules, in their order. A deny is told too, though it is never a fault.
std::vector<Unmatched> unmatched_of(const Policy& policy, const registry::RegistrySnapshot& known);

/// Rules of which no token at all is matched, although they name some, in their order.
std::vector<const Rule*> unmatched_rules(const Policy& policy,
                                         const registry::RegistrySnapshot& known);

}  // namespace opmux::policy
