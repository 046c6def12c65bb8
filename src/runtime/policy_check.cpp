#include "runtime/policy_check.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <opmux/runtime.hpp>

#include "config/policy_reader.hpp"
#include "policy/effects.hpp"
#include "policy/expiry.hpp"
#include "policy/lint.hpp"
#include "runtime/core.hpp"

namespace opmux::runtime {
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
    auto schema = registry::parse_schema(info.schema);
    if (!schema) return schema.error();
    registry::OperatorRecord record;
    record.schema = std::make_shared<const registry::Schema>(std::move(*schema));
    for (const ImplementationInfo& one : info.implementations) {
      if (record.implementations.size() == policy::kMaxCandidates) break;
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

policy::PolicySet with_file(const policy::PolicySet& now, policy::PolicyLayerPtr file) {
  policy::PolicySet next;
  for (const policy::PolicyLayerPtr& layer : now.layers) {
    if (layer->source() != policy::Source::file) next.layers.push_back(layer);
  }
  const auto weaker = std::find_if(next.layers.begin(), next.layers.end(), [](const auto& layer) {
    return layer->source() > policy::Source::file;
  });
  next.layers.insert(weaker, std::move(file));
  return next;
}

std::string first_of(const policy::Effect& effect) {
  return effect.order.empty() ? "" : effect.order.front();
}

/// The earlier effect under the same condition, else the unconditional one.
const policy::Effect& counterpart(const std::vector<policy::Effect>& effects,
                                  const policy::Effect& other) {
  const auto same = std::find_if(effects.begin(), effects.end(),
                                 [&](const policy::Effect& one) { return one.when == other.when; });
  return same == effects.end() ? effects.front() : *same;
}

void add_changes(const policy::PolicySet& now, const policy::PolicySet& next,
                 const std::shared_ptr<const registry::OperatorRecord>& op,
                 std::vector<DecisionChange>& changes) {
  const std::vector<policy::Effect> before = policy::effects_of(now, op);
  const std::vector<policy::Effect> after = policy::effects_of(next, op);
  const std::string general = first_of(after.front());
  for (const policy::Effect& effect : after) {
    const std::string was = first_of(counterpart(before, effect)), is = first_of(effect);
    // If the condition makes no difference, the unconditional line already reports the change.
    if (was == is || (!effect.when.empty() && is == general)) continue;
    changes.push_back({op->schema->name, effect.when, was, is, effect.by});
  }
  for (const policy::Effect& effect : before) {
    const bool gone = std::ranges::none_of(
        after, [&](const policy::Effect& one) { return one.when == effect.when; });
    if (!gone || first_of(effect) == general) continue;
    changes.push_back({op->schema->name, effect.when, first_of(effect), general, after[0].by});
  }
}

}  // namespace

Result<PolicyCheck> check_policy(std::string_view text, std::string_view name,
                                 const PolicyCheckOptions& options, const policy::PolicySet& now,
                                 const registry::RegistrySnapshotPtr& known,
                                 std::chrono::sys_seconds today) {
  Result<registry::RegistrySnapshotPtr> machine =
      options.machine.empty() ? Result(known) : described(options.machine);
  if (!machine) return machine.error();
  const registry::RegistrySnapshot& registry = **machine;
  auto policy =
      config::parse_policy(text, name, &registry, options.strict_names || !options.machine.empty());
  if (!policy) return policy.error();
  (void)policy::mark_expired(*policy, today);
  PolicyCheck check{.rules = policy->rules.size()};
  for (policy::Finding& finding : policy::lint(*policy, registry)) {
    check.findings.push_back({std::move(finding.code), std::move(finding.where),
                              std::move(finding.rule), std::move(finding.text)});
  }
  if (policy->shadow != ShadowOptions{} && !policy->shadow.every) {
    check.findings.push_back(
        {"policy.unread", std::string(name), "",
         "shadow: every is not set, so no call is compared unless another policy sets it"});
  }
  auto file =
      policy::PolicyLayer::make(policy::Source::file, std::move(*policy), std::string(name));
  if (!file) return file.error();
  const policy::PolicySet next = with_file(now, std::move(*file));
  if (Status status = dry_run(next, now, registry); !status.ok()) return status;
  for (const auto& [op, record] : registry.operators) {
    if (record->implementations.empty() || next.hash_for(op) == now.hash_for(op)) continue;
    add_changes(now, next, record, check.changes);
  }
  return check;
}

}  // namespace opmux::runtime
