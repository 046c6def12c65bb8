#pragma once

#include "policy/policy_set.hpp"
#include "policy/token.hpp"

namespace opmux::policy {

/// Whether a layer denies an implementation for all operators: by `deny`, `deny_vendors`, or a rule
/// for operator "*" without a condition.
bool denies(const PolicyLayer& layer, const Subject& subject);

}  // namespace opmux::policy
