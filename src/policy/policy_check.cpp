#include "policy/policy_check.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "policy/files/policy_reader.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/operator_policy.hpp"
#include "policy/rules/policy_set.hpp"

namespace opmux::policy {
namespace {

Kind kind_named(std::string_view word) {
  for (const Kind kind : {Kind::default_, Kind::vendor, Kind::reference}) {
    if (name_of(kind) == word) return kind;
  }
  return Kind::vendor;
}

/// A registry snapshot of a described machine, with schemas and names but no code.
Result<registry::RegistrySnapshotPtr> described(const std::vector<OperatorInfo>& machine) {
  auto snapshot = std::make_shared<registry::RegistrySnapshot>();
  for (const OperatorInfo& info : machine) {
    auto schema = schema::parse_schema(info.schema);
    if (!schema) return schema.error();
    registry::OperatorRecord record;
    record.schema = std::make_shared<const schema::Schema>(std::move(*schema));
    for (const ImplementationInfo& one : info.implementations) {
      if (record.implementations.size() == kMaxCandidates) break;
      auto implementation = std::make_shared<registry::ImplementationRecord>();
      implementation->id = one.id;
      implementation->op = record.schema->name;
      implementation->kind = kind_named(one.kind);
      implementation->vendor = one.vendor;
      implementation->priority = one.priority;
      record.implementations.push_back(std::move(implementation));
    }
    registry::put_operator(*snapshot, std::move(record));
  }
  return registry::RegistrySnapshotPtr(std::move(snapshot));
}

PolicySet with_file(const PolicySet& now, PolicyLayerPtr file) {
  PolicySet next;
  for (const PolicyLayerPtr& layer : now.layers) {
    if (layer->source() != Source::file) next.layers.push_back(layer);
  }
  const auto weaker = std::find_if(next.layers.begin(), next.layers.end(), [](const auto& layer) {
    return layer->source() > Source::file;
  });
  next.layers.insert(weaker, std::move(file));
  return next;
}

std::string first_of(const Effect& effect) {
  return effect.order.empty() ? "" : effect.order.front();
}

/// The earlier effect under the same condition, else the unconditional one.
const Effect& counterpart(const std::vector<Effect>& effects, const Effect& other) {
  const auto same = std::find_if(effects.begin(), effects.end(),
                                 [&](const Effect& one) { return one.when == other.when; });
  return same == effects.end() ? effects.front() : *same;
}

void add_changes(const PolicySet& now, const PolicySet& next,
                 const std::shared_ptr<const registry::OperatorRecord>& op,
                 std::vector<DecisionChange>& changes) {
  const std::vector<Effect> before = effects_of(now, op);
  const std::vector<Effect> after = effects_of(next, op);
  const std::string general = first_of(after.front());
  for (const Effect& effect : after) {
    const std::string was = first_of(counterpart(before, effect)), is = first_of(effect);
    // If the condition makes no difference, the unconditional line already reports the change.
    if (was == is || (!effect.when.empty() && is == general)) continue;
    changes.push_back({op->schema->name, effect.when, was, is, effect.by});
  }
  for (const Effect& effect : before) {
    const bool gone =
        std::ranges::none_of(after, [&](const Effect& one) { return one.when == effect.when; });
    if (!gone || first_of(effect) == general) continue;
    changes.push_back({op->schema->name, effect.when, first_of(effect), general, after[0].by});
  }
}

}  // namespace

Result<PolicyCheck> check_policy(std::string_view text, std::string_view name,
                                 const PolicyCheckOptions& options, const PolicySet& now,
                                 const registry::RegistrySnapshotPtr& known,
                                 std::chrono::sys_seconds today) {
  Result<registry::RegistrySnapshotPtr> machine =
      options.machine.empty() ? Result(known) : described(options.machine);
  if (!machine) return machine.error();
  const registry::RegistrySnapshot& registry = **machine;
  auto policy =
      parse_policy(text, name, &registry, options.strict_names || !options.machine.empty());
  if (!policy) return policy.error();
  (void)mark_expired(*policy, today);
  PolicyCheck check{.rules = policy->rules.size()};
  for (Finding& finding : lint(*policy, registry)) {
    check.findings.push_back({std::move(finding.code), std::move(finding.where),
                              std::move(finding.rule), std::move(finding.text)});
  }
  if (policy->shadow != ShadowOptions{} && !policy->shadow.every) {
    check.findings.push_back(
        {"policy.unread", std::string(name), "",
         "shadow: every is not set, so no call is compared unless another policy sets it"});
  }
  auto file = PolicyLayer::make(Source::file, std::move(*policy), std::string(name));
  if (!file) return file.error();
  const PolicySet next = with_file(now, std::move(*file));
  if (Status status = dry_run(next, now, registry); !status.ok()) return status;
  for (const auto& [op, record] : registry.operators) {
    if (record->implementations.empty() || next.hash_for(op) == now.hash_for(op)) continue;
    add_changes(now, next, record, check.changes);
  }
  return check;
}

}  // namespace opmux::policy
