#include "policy/policy_shortage.hpp"

#include <string>

#include "policy/rules/lint.hpp"
#include "policy/rules/operator_policy.hpp"
#include "policy/rules/runnable_candidates.hpp"

namespace opmux::policy {
namespace {

CandidateSet dropped_by(const PolicyView& view) {
  CandidateSet dropped;
  for (size_t i = 0; i < view.drops.size(); ++i)
    dropped[i] = view.drops[i].reason != registry::Reason::none;
  return dropped;
}

void add_shortage(const PolicySet& policies,
                  const std::shared_ptr<const registry::OperatorRecord>& op,
                  std::vector<OperatorWithoutCandidates>& all) {
  constexpr auto kKnown = registry::Probe::known;
  const std::string& name = op->schema->name;
  RunnableCandidates runnable(*op, kKnown);
  // Most operators have a candidate that can run and no policy.
  if (policies.hash_for(name) == 0 && runnable.any_outside({})) return;
  const auto policy = OperatorPolicy::compile(policies, nullptr, op);
  PolicyView view;
  std::string condition;
  policy->assume(condition, view);
  const bool left = runnable.any_outside(dropped_by(view));
  if (left && policy->least_left(runnable, view, condition) != Left::nothing) return;
  all.push_back({name, condition, describe_drops(view, *op, kKnown), view.allow_none});
}

}  // namespace

std::vector<OperatorWithoutCandidates> find_shortages(const PolicySet& policies,
                                                      const registry::RegistrySnapshot& registry) {
  std::vector<OperatorWithoutCandidates> all;
  for (const auto& [name, op] : registry.operators) {
    if (!op->implementations.empty()) add_shortage(policies, op, all);
  }
  return all;
}

}  // namespace opmux::policy
