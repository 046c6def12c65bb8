#include <algorithm>

#include "base/text.hpp"
#include "policy/condition_program.hpp"
#include "policy/effects.hpp"
#include "policy/operators_of.hpp"
#include "runtime/core.hpp"

namespace opmux::runtime {

namespace {

/// The first operator of a rule if the rule's condition compiles for none of its operators;
/// otherwise null.
const std::string* in_vain_for(const Rule& rule, const registry::RegistrySnapshot& registry) {
  const std::string* first = nullptr;
  const bool fits =
      policy::any_operator_of(rule.op, registry, [&](const std::string& name, const auto& record) {
        if (policy::ConditionProgram::compile(*rule.when, *record.schema)) return true;
        if (first == nullptr) first = &name;
        return false;
      });
  return fits ? nullptr : first;
}

}  // namespace

Status check_conditions(const Policy& policy, const registry::RegistrySnapshot& registry) {
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) {
    for (const Rule& rule : at->rules) {
      const std::string* const op = rule.when ? in_vain_for(rule, registry) : nullptr;
      if (op == nullptr) continue;
      policy::ExpressionProblem problem;
      (void)policy::ConditionProgram::compile(*rule.when, *registry.operators.at(*op)->schema,
                                              &problem);
      const std::string head = rule.name.empty() ? "rule for " + rule.op : '"' + rule.name + '"';
      return {Code::invalid_argument, "policy.when",
              head + ": when: the condition uses a dimension or an argument that " +
                  (rule.op == *op
                       ? *op + " does not have: " + registry.operators.at(*op)->schema->canonical()
                       : "none of the rule's operators has") +
                  (problem.text.empty() ? "" : "; " + problem.text)};
    }
  }
  return {};
}

Status dry_run(const policy::PolicySet& policies, const policy::PolicySet& now,
               const registry::RegistrySnapshot& registry) {
  for (const policy::PolicyLayerPtr& layer : policies.layers) {
    if (std::ranges::find(now.layers, layer) != now.layers.end()) continue;
    if (Status status = check_conditions(layer->policy(), registry); !status.ok()) return status;
  }
  for (const auto& [name, record] : registry.operators) {
    if (record->implementations.empty()) continue;
    const uint64_t hash = policies.hash_for(name);
    if (hash == 0 || hash == now.hash_for(name)) continue;
    policy::PolicyView view;
    const Rule* rule = nullptr;
    const auto compiled = policy::OperatorPolicy::compile(policies, nullptr, record);
    if (!compiled->starves(view, &rule)) continue;
    const std::string where =
        rule == nullptr ? "" : base::concat(" where ", rule->when->to_string());
    return {Code::invalid_argument, "policy.no_candidates",
            base::concat("this policy would leave ", name, " without an implementation", where,
                         ": ", policy::describe_drops(view, *record),
                         "; a rule with allow_none permits that")};
  }
  return {};
}

}  // namespace opmux::runtime
