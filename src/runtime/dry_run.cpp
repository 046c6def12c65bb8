#include <algorithm>

#include "policy/operator_policy.hpp"
#include "runtime/core.hpp"

namespace opmux::runtime {
namespace {

/// A call about which nothing is known: conditions do not hold.
struct UnknownCall {
  explicit UnknownCall(const registry::Schema& schema)
      : signature{&schema, &arguments, &dims, 0, 0} {
    arguments.count = static_cast<uint32_t>(schema.args.size());
    dims.values.fill(-1);
  }
  registry::Arguments arguments;
  registry::BoundDims dims;
  registry::Signature signature;
};

}  // namespace

Status dry_run(const policy::PolicySet& policies, const registry::RegistrySnapshot& registry) {
  for (const auto& [name, record] : registry.operators) {
    if (record->implementations.empty() || policies.hash_for(name) == 0) continue;
    const UnknownCall call(*record->schema);
    policy::PolicyView view;
    policy::OperatorPolicy::compile(policies, nullptr, record)->evaluate(call.signature, view);
    const auto dropped = [](const policy::PolicyView::Drop& drop) {
      return drop.reason != registry::Reason::none;
    };
    if (view.allow_none || !std::ranges::all_of(view.drops, dropped)) continue;
    const policy::PolicyView::Drop& first = view.drops.front();
    return {Code::invalid_argument, "policy.no_candidates",
            "this policy would leave " + name + " without an implementation: " +
                record->implementations.front()->id + " is " + std::string(code_of(first.reason)) +
                " by " + policy::describe(first.by) + "; a rule with allow_none permits that"};
  }
  return {};
}

}  // namespace opmux::runtime
