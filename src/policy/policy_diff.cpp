#include "policy/policy_diff.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "policy/conditions/condition_program.hpp"
#include "policy/rules/operator_policy.hpp"

namespace opmux::policy {
namespace {

using registry::Reason;
using RecordPtr = std::shared_ptr<const registry::OperatorRecord>;

/// The texts of the conditions of all rules for an operator.
void add_conditions(const PolicySet& set, const registry::OperatorRecord& op,
                    std::set<std::string>& into) {
  for (const PolicyLayerPtr& layer : set.layers) {
    for (const Rule* rule : layer->rules_for(op.schema->name)) {
      if (!rule->when || !ConditionProgram::compile(*rule->when, *op.schema)) continue;
      into.insert(rule->when->to_string());
    }
  }
}

/// The layer with the rules that apply if only this condition holds. An empty condition stands for
/// calls where none holds.
PolicyLayerPtr where_holds(const PolicyLayerPtr& layer, const std::string& condition) {
  Policy policy = layer->policy();
  std::erase_if(policy.rules, [&](const Rule& rule) {
    return rule.when && (condition.empty() || rule.when->to_string() != condition);
  });
  for (Rule& rule : policy.rules) rule.when.reset();
  auto made = PolicyLayer::make(layer->source(), std::move(policy), layer->name());
  return made ? *made : layer;
}

bool can_run(const registry::ImplementationRecord& implementation) {
  const registry::Backend& backend = *implementation.backend;
  return backend.enabled() && !backend.lost_by_fork() && backend.available() &&
         implementation.capability.machine == Reason::none;
}

/// The decision by policy alone, with its causes. Keeps the layers alive that origins point into.
struct Ruling {
  Ruling(const PolicySet& set, const RecordPtr& op, const std::string& condition) {
    for (const PolicyLayerPtr& layer : set.layers) {
      layers.layers.push_back(where_holds(layer, condition));
    }
    const UnknownCall call(*op->schema);
    OperatorPolicy::compile(layers, nullptr, op)->evaluate(call.signature, view);
    for (size_t i = 0; i < op->implementations.size(); ++i) {
      if (view.drops[i].reason != Reason::none || !can_run(*op->implementations[i])) continue;
      if (chosen < 0 || better(*op, i, static_cast<size_t>(chosen))) chosen = static_cast<int>(i);
    }
  }
  bool better(const registry::OperatorRecord& op, size_t a, size_t b) const {
    if (view.tiers[a] != view.tiers[b]) return view.tiers[a] < view.tiers[b];
    if (view.scores[a] != view.scores[b]) return view.scores[a] > view.scores[b];
    const auto &left = *op.implementations[a], &right = *op.implementations[b];
    return left.priority != right.priority ? left.priority > right.priority : left.id < right.id;
  }
  bool dropped(int candidate) const {
    return candidate >= 0 && view.drops[static_cast<size_t>(candidate)].reason != Reason::none;
  }
  std::string drop_text(int candidate) const {
    const PolicyView::Drop& drop = view.drops[static_cast<size_t>(candidate)];
    return describe(drop.by);
  }

  PolicySet layers;
  PolicyView view;
  int chosen = -1;
};

/// The names of the rules that change scores of an operator.
std::string boosting_rules(const PolicySet& set, const std::string& op) {
  std::vector<std::string> names;
  for (const PolicyLayerPtr& layer : set.layers) {
    for (const Rule* rule : layer->rules_for(op)) {
      if (!rule->boost.empty()) names.push_back(describe(Origin{layer.get(), rule, "boost"}));
    }
  }
  return base::join(names, ", ");
}

std::string because(const Ruling& from, const Ruling& to, const std::string& op) {
  if (to.dropped(from.chosen)) return to.drop_text(from.chosen);
  if (from.dropped(to.chosen)) return "no longer " + from.drop_text(to.chosen);
  const auto list_text = [](const Ruling& ruling) {
    return ruling.view.has_list ? describe(ruling.view.list_by) : std::string();
  };
  const std::string before = list_text(from), after = list_text(to);
  if (!after.empty() && to.view.tiers != from.view.tiers) return after;
  if (!before.empty() && after.empty()) return "no longer " + before;
  const std::string boosts = boosting_rules(to.layers, op);
  if (!boosts.empty()) return boosts;
  const std::string no_more = boosting_rules(from.layers, op);
  return no_more.empty() ? "the order of candidates" : "no longer " + no_more;
}

std::string name_of(const registry::OperatorRecord& op, int candidate) {
  return candidate < 0 ? "" : op.implementations[static_cast<size_t>(candidate)]->id;
}

}  // namespace

std::vector<ChoiceChange> compare(const PolicySet& from, const PolicySet& to,
                                  const registry::RegistrySnapshot& registry) {
  std::vector<ChoiceChange> changes;
  for (const auto& [name, op] : registry.operators) {
    if (op->implementations.empty() || from.hash_for(name) == to.hash_for(name)) continue;
    std::set<std::string> conditions{""};
    add_conditions(from, *op, conditions);
    add_conditions(to, *op, conditions);
    const Ruling before_all(from, op, ""), after_all(to, op, "");
    for (const std::string& condition : conditions) {
      const Ruling before(from, op, condition), after(to, op, condition);
      const bool as_always = !condition.empty() && before.chosen == before_all.chosen &&
                             after.chosen == after_all.chosen;
      if (before.chosen == after.chosen || as_always) continue;
      changes.push_back({name, condition.empty() ? "always" : condition,
                         name_of(*op, before.chosen), name_of(*op, after.chosen),
                         because(before, after, name)});
    }
  }
  return changes;
}

}  // namespace opmux::policy
