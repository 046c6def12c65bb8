#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "registry/snapshot.hpp"

namespace opmux::policy {

/// An operator that a policy names and the registry lacks.
struct UnknownOperator {
  std::string name;  ///< a name, or a pattern that matches no operator
  std::string text;  ///< "per_op rmsnorm: there is no operator 'rmsnorm'; did you mean 'rms_norm'?"
  bool near = false;  ///< the text suggests an operator
};

/// "there is no operator 'rmsnorm'; did you mean 'rms_norm'?", or empty if `op`, a name or a
/// pattern, fits a registered operator. An operator of a vendor, "acme.twice", comes with a plugin
/// that this host may not have, so it counts as known.
std::string why_unknown(std::string_view op, const registry::RegistrySnapshot& present);

/// The unknown operators that `per_op` and the rules of a policy name.
std::vector<UnknownOperator> unknown_operators(const Policy& policy,
                                               const registry::RegistrySnapshot& present);

/// "policy.op" for the first of them; ok if there is none.
Status check_operators(const Policy& policy, const registry::RegistrySnapshot& present);

}  // namespace opmux::policy
