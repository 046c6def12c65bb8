#include "policy/policy_diff.hpp"

#include <set>

#include "base/text.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/operator_policy.hpp"
#include "policy/rules/runnable_candidates.hpp"

namespace opmux::policy {
namespace {

using registry::Reason;
using RecordPtr = std::shared_ptr<const registry::OperatorRecord>;

/// The effects of one set of policies on one operator.
class Outlook {
 public:
  Outlook(const PolicySet& set, const RecordPtr& op, RunnableCandidates& runnable)
      : set_(set),
        op_(*op),
        policy_(OperatorPolicy::compile(set, nullptr, op)),
        runnable_(runnable) {}

  std::vector<std::string> conditions() const { return policy_->conditions(); }
  Effect where(const std::string& condition) const {
    return effect_of(*policy_, op_, runnable_, condition);
  }

  /// The drop of a candidate; nullptr if the effect does not drop it.
  const PolicyView::Drop* drop_of(const std::string& id, const Effect& effect) const {
    for (size_t i = 0; i < op_.implementations.size(); ++i) {
      if (op_.implementations[i]->id != id) continue;
      return effect.view.drops[i].reason == Reason::none ? nullptr : &effect.view.drops[i];
    }
    return nullptr;
  }

  /// The names of the rules that change scores where a condition holds.
  std::string boosting_rules(const std::string& condition) const {
    std::vector<std::string> names;
    for (const PolicyLayerPtr& layer : set_.layers) {
      for (const Rule* rule : layer->rules_for(op_.schema->name)) {
        if (rule->boost.empty() || (rule->when && rule->when->to_string() != condition)) continue;
        names.push_back(describe(Origin{layer.get(), rule, "boost"}));
      }
    }
    return base::join(names, ", ");
  }

 private:
  const PolicySet& set_;
  const registry::OperatorRecord& op_;
  std::shared_ptr<const OperatorPolicy> policy_;
  RunnableCandidates& runnable_;
};

std::string first_of(const Effect& effect) {
  return effect.order.empty() ? "" : effect.order.front();
}

std::string because(const Outlook& before, const Effect& from, const Outlook& after,
                    const Effect& to) {
  if (const auto* const drop = after.drop_of(first_of(from), to)) return describe(drop->by);
  if (const auto* const drop = before.drop_of(first_of(to), from))
    return "no longer " + describe(drop->by);
  const auto list_text = [](const Effect& effect) {
    return effect.view.has_list ? describe(effect.view.list_by) : std::string();
  };
  const std::string was = list_text(from), is = list_text(to);
  if (!is.empty() && to.view.tiers != from.view.tiers) return is;
  if (!was.empty() && is.empty()) return "no longer " + was;
  const std::string boosts = after.boosting_rules(to.when);
  if (!boosts.empty()) return boosts;
  const std::string no_more = before.boosting_rules(from.when);
  return no_more.empty() ? "the order of candidates" : "no longer " + no_more;
}

void add_changes(const PolicySet& from, const PolicySet& to, const RecordPtr& op,
                 std::vector<EffectChange>& changes) {
  RunnableCandidates runnable(*op);
  const Outlook before(from, op, runnable), after(to, op, runnable);
  std::set<std::string> conditions{""};
  for (const Outlook* outlook : {&before, &after}) {
    for (std::string& condition : outlook->conditions()) conditions.insert(std::move(condition));
  }
  const std::string always_from = first_of(before.where("")), always_to = first_of(after.where(""));
  for (const std::string& condition : conditions) {
    const Effect was = before.where(condition), is = after.where(condition);
    const std::string first = first_of(was), second = first_of(is);
    // The line without a condition already reports the change.
    const bool as_always = !condition.empty() && first == always_from && second == always_to;
    if (first == second || as_always) continue;
    changes.push_back(
        {op->schema->name, condition, first, second, because(before, was, after, is), is.by});
  }
}

}  // namespace

std::vector<EffectChange> compare(const PolicySet& from, const PolicySet& to,
                                  const registry::RegistrySnapshot& registry) {
  std::vector<EffectChange> changes;
  for (const auto& [name, op] : registry.operators) {
    if (op->implementations.empty() || from.hash_for(name) == to.hash_for(name)) continue;
    add_changes(from, to, op, changes);
  }
  return changes;
}

}  // namespace opmux::policy
