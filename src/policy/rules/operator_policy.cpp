#include "policy/rules/operator_policy.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <opmux/policy.hpp>

#include "base/text.hpp"
#include "policy/conditions/condition_program.hpp"
#include "policy/policy_source.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/policy_entry.hpp"
#include "policy/rules/policy_set.hpp"
#include "policy/rules/runnable_candidates.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {

using registry::Reason;

struct OperatorPolicy::Data {
  std::vector<PolicyLayerPtr> layers;  ///< strongest first, including scopes
  std::shared_ptr<const registry::OperatorRecord> op;
  std::vector<PolicyEntry> entries;  ///< strongest first
  std::vector<double> priorities;    ///< the best of each candidate
  std::vector<uint16_t> by_priority;
  schema::Dependencies dependencies;
};

namespace {

constexpr double kHighestScore = 1e6;

/// Order in which reasons win if a candidate is dropped for several: lower first.
int precedence_of(Reason reason) {
  switch (reason) {
    case Reason::policy_denied: return 0;
    case Reason::policy_vendor_denied: return 1;
    case Reason::policy_outside_require: return 2;
    case Reason::policy_outside_order: return 3;
    case Reason::policy_not_allowed: return 4;
    case Reason::policy_vendor_not_allowed: return 5;
    default: return 6;
  }
}

/// One evaluation: applies the matching entries, strongest first, and fills the view.
class PolicyEvaluation {
 public:
  PolicyEvaluation(const std::vector<double>& priorities, PolicyView& view) : view_(view) {
    view.drops.assign(priorities.size(), {});
    view.tiers.assign(priorities.size(), 0);
    view.hints.assign(priorities.size(), nullptr);
    view.scores.assign(priorities.begin(), priorities.end());
    view.multipliers.assign(priorities.size(), 1);
    view.strict = view.has_list = view.allow_none = false;
    view.transforms = 0;
    view.strict_by = view.list_by = {};
    view.requires_by.clear();
  }

  /// Replaces the best priorities of candidates with hints by those that they have in this call.
  void seed(const std::vector<registry::ImplementationPtr>& candidates,
            const schema::Signature& signature) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      const registry::ImplementationRecord& candidate = *candidates[i];
      if (candidate.hints.empty()) continue;
      view_.hints[i] = hint_for(candidate.hints, signature);
      view_.scores[i] = view_.hints[i] ? view_.hints[i]->hint.priority : candidate.priority;
    }
  }

  void apply(const PolicyEntry& entry) {
    constrain(entry);
    order(entry);
    for (const CandidateBoost& boost : entry.boosts) {
      view_.scores[boost.candidate] += boost.add;
      view_.multipliers[boost.candidate] *= boost.multiply;
    }
    view_.allow_none = view_.allow_none || entry.allow_none;
  }

  void finish() {
    choose_list();
    for (size_t i = 0; i < view_.scores.size(); ++i) {
      double& score = view_.scores[i];
      // The test avoids 0 * infinity, which is NaN.
      score = score <= 0 ? 0 : std::min(score * view_.multipliers[i], kHighestScore);
    }
  }

 private:
  static Origin origin(const PolicyEntry& entry, const char* field) {
    return {entry.layer, entry.rule, field};
  }

  void drop(const Indices& candidates, Reason reason, const Origin& by) {
    for (const uint16_t i : candidates) {
      PolicyView::Drop& at = view_.drops[i];
      if (precedence_of(reason) < precedence_of(at.reason)) at = {reason, by};
    }
  }

  void constrain(const PolicyEntry& entry) {
    drop(entry.denied, Reason::policy_denied, origin(entry, "deny"));
    drop(entry.vendor_denied, Reason::policy_vendor_denied, origin(entry, "deny_vendors"));
    if (!entry.outside_require) return;
    view_.requires_by.push_back(origin(entry, "require"));
    drop(*entry.outside_require, Reason::policy_outside_require, view_.requires_by.back());
  }

  /// The first entry that sets an ordering field wins.
  void order(const PolicyEntry& entry) {
    if (entry.strict && view_.strict_by.layer == nullptr) {
      view_.strict = *entry.strict;
      view_.strict_by = origin(entry, "strict");
    }
    if (entry.transforms && !transforms_set_) {
      transforms_set_ = true;
      view_.transforms = *entry.transforms;
    }
    if (entry.prefer && prefer_ == nullptr) prefer_ = &entry;
    if (entry.order && order_ == nullptr) {
      order_ = &entry;
      drop(entry.order->outside, Reason::policy_outside_order, origin(entry, "order"));
    }
    if (entry.outside_allow && !allowed_) {
      allowed_ = true;
      drop(*entry.outside_allow, Reason::policy_not_allowed, origin(entry, "allow"));
    }
    if (entry.outside_allow_vendors && !vendors_allowed_) {
      vendors_allowed_ = true;
      drop(*entry.outside_allow_vendors, Reason::policy_vendor_not_allowed,
           origin(entry, "allow_vendors"));
    }
  }

  /// The tiers come from `order` or `prefer`, whichever is in the stronger layer; within a layer
  /// `order` wins.
  void choose_list() {
    const bool by_order =
        order_ != nullptr && (prefer_ == nullptr || order_->strength <= prefer_->strength);
    const PolicyEntry* entry = by_order ? order_ : prefer_;
    if (entry == nullptr) return;
    view_.has_list = true;
    view_.list_by = origin(*entry, by_order ? "order" : "prefer");
    const TierList& list = by_order ? *entry->order : *entry->prefer;
    std::copy(list.tiers.begin(), list.tiers.end(), view_.tiers.begin());
  }

  PolicyView& view_;
  const PolicyEntry* prefer_ = nullptr;
  const PolicyEntry* order_ = nullptr;
  bool allowed_ = false, vendors_allowed_ = false, transforms_set_ = false;
};

std::vector<uint16_t> sorted_by_priority(
    const std::vector<double>& priorities,
    const std::vector<registry::ImplementationPtr>& candidates) {
  std::vector<uint16_t> sorted(candidates.size());
  std::iota(sorted.begin(), sorted.end(), uint16_t{0});
  std::sort(sorted.begin(), sorted.end(), [&](uint16_t a, uint16_t b) {
    return priorities[a] != priorities[b] ? priorities[a] > priorities[b]
                                          : candidates[a]->id < candidates[b]->id;
  });
  return sorted;
}

/// The entries with one condition. The candidates that they drop are those of the call in which
/// only this condition is true, unless an entry replaces a list of a weaker one.
struct ConditionDrops {
  CandidateSet dropped;
  bool replaces = false;

  void add(const PolicyEntry& entry) {
    replaces |= entry.order || entry.outside_allow;
    for (const uint16_t i : entry.denied) dropped.set(i);
    if (!entry.outside_require) return;
    for (const uint16_t i : *entry.outside_require) dropped.set(i);
  }
};

std::vector<PolicyLayerPtr> all_layers(const PolicySet& set, PolicyLayerPtr scope) {
  std::vector<PolicyLayerPtr> layers;
  const auto add_chain = [&](PolicyLayerPtr layer) {
    for (; layer; layer = layer->outer()) layers.push_back(layer);
  };
  add_chain(std::move(scope));
  for (const PolicyLayerPtr& layer : set.layers) add_chain(layer);
  return layers;
}

}  // namespace

OperatorPolicy::OperatorPolicy() = default;
OperatorPolicy::~OperatorPolicy() = default;

std::shared_ptr<const OperatorPolicy> OperatorPolicy::compile(
    const PolicySet& set, PolicyLayerPtr scope,
    std::shared_ptr<const registry::OperatorRecord> op) {
  auto data = std::make_unique<Data>();
  data->layers = all_layers(set, std::move(scope));
  for (size_t strength = 0; strength < data->layers.size(); ++strength) {
    for (PolicyEntry& entry : entries_of(*data->layers[strength], strength, *op)) {
      if (entry.when) entry.when->add_dependencies(data->dependencies);
      data->entries.push_back(std::move(entry));
    }
  }
  for (const auto& impl : op->implementations) {
    data->priorities.push_back(registry::best_priority(impl->priority, impl->hints));
  }
  data->by_priority = sorted_by_priority(data->priorities, op->implementations);
  data->op = std::move(op);
  std::shared_ptr<OperatorPolicy> compiled(new OperatorPolicy);
  compiled->data_ = std::move(data);
  return compiled;
}

void OperatorPolicy::evaluate(const schema::Signature& signature, PolicyView& view) const {
  PolicyEvaluation evaluation(data_->priorities, view);
  evaluation.seed(data_->op->implementations, signature);
  for (const PolicyEntry& entry : data_->entries) {
    if (!entry.when || entry.when->holds(signature)) evaluation.apply(entry);
  }
  evaluation.finish();
}

void OperatorPolicy::assume(std::string_view condition, PolicyView& view) const {
  PolicyEvaluation evaluation(data_->priorities, view);
  for (const PolicyEntry& entry : data_->entries) {
    if (!entry.when || entry.condition == condition) evaluation.apply(entry);
  }
  evaluation.finish();
}

std::vector<std::string> OperatorPolicy::conditions() const {
  std::vector<std::string> all;
  std::unordered_set<std::string_view> known;
  for (const PolicyEntry& entry : data_->entries) {
    if (entry.when && !entry.when->never() && known.insert(entry.condition).second)
      all.push_back(entry.condition);
  }
  return all;
}

Left OperatorPolicy::least_left(RunnableCandidates& runnable, PolicyView& view,
                                std::string& condition) const {
  condition.clear();
  assume("", view);
  const Left general = view.allow_none ? Left::something : runnable.left_by(view);
  if (general != Left::something || view.nothing_left()) return general;
  CandidateSet dropped;
  for (size_t i = 0; i < view.drops.size(); ++i) dropped[i] = view.drops[i].reason != Reason::none;
  std::unordered_map<std::string_view, ConditionDrops> by_condition;
  for (const PolicyEntry& entry : data_->entries) {
    if (entry.when && !entry.when->never()) by_condition[entry.condition].add(entry);
  }
  Left least = Left::something;
  for (const PolicyEntry& entry : data_->entries) {
    const auto own = by_condition.find(entry.condition);
    if (own == by_condition.end()) continue;
    const auto [text, drops] = *own;
    by_condition.erase(own);
    if (!drops.replaces && runnable.any_outside(dropped | drops.dropped)) continue;
    assume(text, view);
    if (view.allow_none) continue;
    const Left left = runnable.left_by(view);
    condition = text;
    if (left == Left::nothing) return left;
    if (left == Left::unknown) least = left;
  }
  return least;
}

bool PolicyView::nothing_left() const {
  return !drops.empty() && std::all_of(drops.begin(), drops.end(), [](const Drop& drop) {
    return drop.reason != Reason::none;
  });
}

const std::vector<uint16_t>& OperatorPolicy::by_priority() const { return data_->by_priority; }

const schema::Dependencies& OperatorPolicy::dependencies() const { return data_->dependencies; }

bool OperatorPolicy::may_transform() const {
  return std::ranges::any_of(
      data_->entries, [](const PolicyEntry& entry) { return entry.transforms.value_or(0) != 0; });
}

Tuning OperatorPolicy::tuning() const {
  for (const PolicyLayerPtr& layer : data_->layers) {
    if (const auto& tuning = layer->policy().tuning) return *tuning;
  }
  return Tuning::bundle;
}

namespace {

/// The first operator of a rule if the rule's condition compiles for none of its operators;
/// otherwise null.
const std::string* in_vain_for(const Rule& rule, const registry::RegistrySnapshot& registry) {
  const std::string* first = nullptr;
  const bool fits =
      any_operator_of(rule.op, registry, [&](const std::string& name, const auto& record) {
        if (ConditionProgram::compile(*rule.when, *record.schema)) return true;
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
      schema::ExpressionProblem problem;
      (void)ConditionProgram::compile(*rule.when, *registry.find(*op)->schema, &problem);
      const std::string head = rule.name.empty() ? "rule for " + rule.op : '"' + rule.name + '"';
      return {
          Code::invalid_argument, "policy.when",
          head + ": when: the condition uses a dimension or an argument that " +
              (rule.op == *op ? *op + " does not have: " + registry.find(*op)->schema->canonical()
                              : "none of the rule's operators has") +
              (problem.text.empty() ? "" : "; " + problem.text)};
    }
  }
  return {};
}

namespace {

/// Why a policy that leaves an operator nothing is refused. `view` is that of the operator where
/// `condition` holds.
Status leaves_nothing(const registry::OperatorRecord& op, const PolicyView& view,
                      const std::string& condition) {
  return {Code::invalid_argument, "policy.no_candidates",
          base::concat("this policy would leave ", op.schema->name, " without an implementation",
                       view.nothing_left() ? "" : " that can run here",
                       condition.empty() ? "" : " where ", condition, ": ",
                       describe_drops(view, op), "; a rule with allow_none permits that")};
}

/// The operator with its implementations in deferred plugins.
std::shared_ptr<const registry::OperatorRecord> with_deferred(
    const std::shared_ptr<const registry::OperatorRecord>& op, const DeferredPlugins* plugins) {
  std::vector<registry::ImplementationPtr> deferred;
  if (plugins != nullptr) deferred = plugins->implementations_of(op->schema->name);
  if (deferred.empty()) return op;
  auto whole = std::make_shared<registry::OperatorRecord>(*op);
  for (registry::ImplementationPtr& each : deferred) {
    if (whole->implementations.size() == kMaxCandidates) break;
    whole->implementations.push_back(std::move(each));
  }
  return whole;
}

/// The operators that two sets of policies may treat differently.
template <class Visit>
Status visit_differing(const PolicySet& policies, const PolicySet& now,
                       const registry::RegistrySnapshot& registry, const Visit& visit) {
  const auto named = policies.differing(now);
  const auto one = [&](std::string_view name, const auto& record) -> Status {
    const uint64_t hash = policies.hash_for(name);
    return hash == 0 || hash == now.hash_for(name) ? Status() : visit(record);
  };
  if (named) {
    for (const std::string_view name : *named) {
      const auto* const found = registry.operators.find(name);
      if (found == nullptr) continue;
      if (Status status = one(name, found->second); !status.ok()) return status;
    }
    return {};
  }
  for (const auto& [name, record] : registry.operators) {
    if (Status status = one(name, record); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status dry_run(const PolicySet& policies, const PolicySet& now,
               const registry::RegistrySnapshot& registry, const DeferredPlugins* plugins,
               bool* undecided) {
  for (const PolicyLayerPtr& layer : policies.layers) {
    if (std::ranges::find(now.layers, layer) != now.layers.end()) continue;
    if (Status status = check_conditions(layer->policy(), registry); !status.ok()) return status;
  }
  return visit_differing(policies, now, registry, [&](const auto& registered) -> Status {
    const auto op = with_deferred(registered, plugins);
    if (op->implementations.empty()) return {};
    PolicyView view;
    std::string condition;
    RunnableCandidates runnable(*op, registry::Probe::run);
    const Left left =
        OperatorPolicy::compile(policies, nullptr, op)->least_left(runnable, view, condition);
    if (left == Left::unknown && undecided != nullptr) *undecided = true;
    return left == Left::nothing ? leaves_nothing(*op, view, condition) : Status();
  });
}

}  // namespace opmux::policy
