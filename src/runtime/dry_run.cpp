#include <algorithm>

#include "policy/condition_program.hpp"
#include "policy/operator_policy.hpp"
#include "policy/token.hpp"
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

/// The first operator that a rule is for, if none of them has what its condition asks for.
const std::string* in_vain_for(const Rule& rule, const registry::RegistrySnapshot& registry) {
  const std::string* first = nullptr;
  for (const auto& [name, record] : registry.operators) {
    if (!policy::glob_match(rule.op, name)) continue;
    if (policy::ConditionProgram::compile(*rule.when, *record->schema)) return nullptr;
    if (first == nullptr) first = &name;
  }
  return first;
}

}  // namespace

Status check_conditions(const Policy& policy, const registry::RegistrySnapshot& registry) {
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) {
    for (const Rule& rule : at->rules) {
      const std::string* const op = rule.when ? in_vain_for(rule, registry) : nullptr;
      if (op == nullptr) continue;
      const std::string head = rule.name.empty() ? "rule for " + rule.op : '"' + rule.name + '"';
      return {Code::invalid_argument, "policy.when",
              head + ": when: it asks for a dimension or an argument that " +
                  (rule.op == *op
                       ? *op + " does not have: " + registry.operators.at(*op)->schema->canonical()
                       : "no operator it is for has")};
    }
  }
  return {};
}

Status dry_run(const policy::PolicySet& policies, const registry::RegistrySnapshot& registry) {
  for (const policy::PolicyLayerPtr& layer : policies.layers) {
    if (Status status = check_conditions(layer->policy(), registry); !status.ok()) return status;
  }
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
