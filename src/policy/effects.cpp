#include "policy/effects.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace opmux::policy {
namespace {

std::vector<std::string> ranked(const PolicyView& view, const OperatorPolicy& policy,
                                const registry::OperatorRecord& op) {
  std::vector<std::tuple<uint16_t, double, size_t, uint16_t>> left;
  for (const uint16_t i : policy.by_priority()) {
    if (view.drops[i].reason != registry::Reason::none) continue;
    left.emplace_back(view.tiers[i], -view.scores[i], left.size(), i);
  }
  std::sort(left.begin(), left.end());
  std::vector<std::string> ids;
  for (const auto& each : left) ids.push_back(op.implementations[std::get<3>(each)]->id);
  return ids;
}

/// The origin of the list that ranks candidates or, without one, of the first drop.
std::string author_of(const PolicyView& view) {
  if (view.has_list) return describe(view.list_by);
  for (const PolicyView::Drop& drop : view.drops) {
    if (drop.reason != registry::Reason::none) return describe(drop.by);
  }
  return {};
}

}  // namespace

std::vector<Effect> effects_of(const PolicySet& set,
                               const std::shared_ptr<const registry::OperatorRecord>& op) {
  const auto policy = OperatorPolicy::compile(set, nullptr, op);
  std::vector<const Rule*> assumed{nullptr};
  for (const Rule* rule : policy->conditional()) assumed.push_back(rule);
  std::vector<Effect> effects;
  PolicyView view;
  for (const Rule* rule : assumed) {
    policy->assume(rule, view);
    Effect effect{rule, rule == nullptr ? "" : rule->when->to_string(), ranked(view, *policy, *op),
                  author_of(view)};
    effects.push_back(std::move(effect));
  }
  return effects;
}

std::string describe_drops(const PolicyView& view, const registry::OperatorRecord& op) {
  std::vector<std::string> parts;
  std::set<std::string> told;
  for (size_t i = 0; i < view.drops.size(); ++i) {
    const PolicyView::Drop& drop = view.drops[i];
    if (drop.reason == registry::Reason::none || !told.insert(describe(drop.by)).second) continue;
    parts.push_back(base::concat(op.implementations[i]->id, " is ", code_of(drop.reason), " by ",
                                 describe(drop.by)));
  }
  for (const Origin& require : view.requires_by) {
    if (told.insert(describe(require)).second) {
      parts.push_back(base::concat("everything required by ", describe(require), " is denied"));
    }
  }
  return base::join(parts, "; ");
}

}  // namespace opmux::policy
