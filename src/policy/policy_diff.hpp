#pragma once

#include <vector>

#include <opmux/policy.hpp>

#include "policy/rules/policy_set.hpp"
#include "registry/snapshot.hpp"
#include "schema/facts.hpp"

namespace opmux::policy {

/// A call about which no fact is known, so that no condition holds.
struct UnknownCall {
  explicit UnknownCall(const schema::Schema& schema) : signature{&schema, &arguments, &dims, 0, 0} {
    arguments.count = static_cast<uint32_t>(schema.args.size());
    dims.values.fill(-1);
  }
  schema::Arguments arguments;
  schema::BoundDims dims;
  schema::Signature signature;
};

/// The decisions that differ between two sets of policies, for every operator: once where no
/// condition holds, and once for each condition alone. Considers policies and availability, but not
/// capabilities, because those depend on the arguments of calls.
std::vector<ChoiceChange> compare(const PolicySet& from, const PolicySet& to,
                                  const registry::RegistrySnapshot& registry);

}  // namespace opmux::policy
