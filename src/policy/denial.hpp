#pragma once

#include "policy/policy_set.hpp"
#include "policy/token.hpp"

namespace opmux::policy {

/// Whether a layer denies something whatever the operator: its own `deny` and `deny_vendors`, and
/// rules without a condition for operator "*".
bool denies(const PolicyLayer& layer, const Subject& subject);

}  // namespace opmux::policy
