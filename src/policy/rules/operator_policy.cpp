#include "policy/rules/operator_policy.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <opmux/policy.hpp>

#include "base/text.hpp"
#include "policy/conditions/condition_program.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/policy_entry.hpp"
#include "policy/rules/policy_set.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {

using registry::Reason;

struct OperatorPolicy::Data {
  std::vector<PolicyLayerPtr> layers;  ///< strongest first, including scopes
  std::shared_ptr<const registry::OperatorRecord> op;
  std::vector<PolicyEntry> entries;  ///< strongest first
  std::vector<double> priorities;
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
    view.scores.assign(priorities.begin(), priorities.end());
    view.multipliers.assign(priorities.size(), 1);
    view.strict = view.has_list = view.allow_none = false;
    view.transforms = 0;
    view.strict_by = view.list_by = {};
    view.requires_by.clear();
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
    const std::vector<registry::ImplementationPtr>& candidates) {
  std::vector<uint16_t> sorted(candidates.size());
  std::iota(sorted.begin(), sorted.end(), uint16_t{0});
  std::sort(sorted.begin(), sorted.end(), [&](uint16_t a, uint16_t b) {
    const registry::ImplementationRecord& left = *candidates[a];
    const registry::ImplementationRecord& right = *candidates[b];
    return left.priority != right.priority ? left.priority > right.priority : left.id < right.id;
  });
  return sorted;
}

/// Returns false only if a candidate certainly remains when the entry applies in addition to the
/// unconditional ones, whose drops are `general`.
bool may_starve(const PolicyEntry& entry, const std::vector<PolicyView::Drop>& general) {
  if (entry.order || entry.outside_allow) return true;
  CandidateSet dropped;
  for (size_t i = 0; i < general.size(); ++i) dropped[i] = general[i].reason != Reason::none;
  for (const uint16_t i : entry.denied) dropped.set(i);
  if (entry.outside_require) {
    for (const uint16_t i : *entry.outside_require) dropped.set(i);
  }
  return dropped.count() == general.size();
}

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
  for (const auto& impl : op->implementations) data->priorities.push_back(impl->priority);
  data->by_priority = sorted_by_priority(op->implementations);
  data->op = std::move(op);
  std::shared_ptr<OperatorPolicy> compiled(new OperatorPolicy);
  compiled->data_ = std::move(data);
  return compiled;
}

void OperatorPolicy::evaluate(const schema::Signature& signature, PolicyView& view) const {
  PolicyEvaluation evaluation(data_->priorities, view);
  for (const PolicyEntry& entry : data_->entries) {
    if (!entry.when || entry.when->holds(signature)) evaluation.apply(entry);
  }
  evaluation.finish();
}

void OperatorPolicy::assume(const Rule* rule, PolicyView& view) const {
  PolicyEvaluation evaluation(data_->priorities, view);
  for (const PolicyEntry& entry : data_->entries) {
    if (!entry.when || entry.rule == rule) evaluation.apply(entry);
  }
  evaluation.finish();
}

std::vector<const Rule*> OperatorPolicy::conditional() const {
  std::vector<const Rule*> rules;
  for (const PolicyEntry& entry : data_->entries) {
    if (entry.when) rules.push_back(entry.rule);
  }
  return rules;
}

bool OperatorPolicy::starves(PolicyView& view, const Rule** rule) const {
  *rule = nullptr;
  assume(nullptr, view);
  if (view.nothing_left()) return !view.allow_none;
  const std::vector<PolicyView::Drop> general = view.drops;
  for (const PolicyEntry& entry : data_->entries) {
    if (!entry.when || !may_starve(entry, general)) continue;
    assume(entry.rule, view);
    *rule = entry.rule;
    if (view.nothing_left() && !view.allow_none) return true;
  }
  return false;
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

Status dry_run(const PolicySet& policies, const PolicySet& now,
               const registry::RegistrySnapshot& registry) {
  for (const PolicyLayerPtr& layer : policies.layers) {
    if (std::ranges::find(now.layers, layer) != now.layers.end()) continue;
    if (Status status = check_conditions(layer->policy(), registry); !status.ok()) return status;
  }
  for (const auto& [name, record] : registry.operators) {
    if (record->implementations.empty()) continue;
    const uint64_t hash = policies.hash_for(name);
    if (hash == 0 || hash == now.hash_for(name)) continue;
    PolicyView view;
    const Rule* rule = nullptr;
    const auto compiled = OperatorPolicy::compile(policies, nullptr, record);
    if (!compiled->starves(view, &rule)) continue;
    const std::string where =
        rule == nullptr ? "" : base::concat(" where ", rule->when->to_string());
    return {
        Code::invalid_argument, "policy.no_candidates",
        base::concat("this policy would leave ", name, " without an implementation", where, ": ",
                     describe_drops(view, *record), "; a rule with allow_none permits that")};
  }
  return {};
}

}  // namespace opmux::policy

namespace opmux {
namespace {

/// A policy without its outer policies.
Policy top_of(const Policy& policy) {
  Policy top = policy;
  top.outer = nullptr;
  return top;
}

std::string content_of(const Policy& policy) {
  policy::ContentWriter writer;
  writer.add_all(top_of(policy));
  return writer.bytes();
}

std::vector<const Policy*> chain_of(const Policy& policy) {
  std::vector<const Policy*> chain;
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) chain.push_back(at);
  return chain;
}

/// Links the policies of `chain`, innermost first, into one.
Policy linked(const std::vector<const Policy*>& chain) {
  std::shared_ptr<const Policy> outer;
  for (size_t i = chain.size(); i-- > 1;) {
    auto next = std::make_shared<Policy>(top_of(*chain[i]));
    next->outer = std::move(outer);
    outer = std::move(next);
  }
  Policy whole = chain.empty() ? Policy() : top_of(*chain.front());
  whole.outer = std::move(outer);
  return whole;
}

}  // namespace

bool Policy::empty() const {
  const bool lists = prefer.empty() && require.empty() && deny.empty() && allow.empty() &&
                     allow_vendors.empty() && deny_vendors.empty() && transforms.empty();
  return lists && !strict && per_op.empty() && rules.empty() && (!outer || outer->empty());
}

Policy combine(const Policy& outer, const Policy& inner) {
  // Drop repeated policies, so that entering the same scope repeatedly does not grow the chain.
  std::vector<const Policy*> chain = chain_of(inner);
  for (const Policy* at : chain_of(outer)) chain.push_back(at);
  std::vector<const Policy*> kept;
  std::vector<std::string> contents;
  for (const Policy* at : chain) {
    if (top_of(*at).empty()) continue;
    std::string content = content_of(*at);
    if (std::find(contents.begin(), contents.end(), content) != contents.end()) continue;
    contents.push_back(std::move(content));
    kept.push_back(at);
  }
  return linked(kept);
}

}  // namespace opmux
