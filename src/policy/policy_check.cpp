#include "policy/policy_check.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "policy/files/policy_reader.hpp"
#include "policy/policy_diff.hpp"
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
  const auto backend = std::make_shared<registry::Backend>(registry::BackendDraft{});
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
      auto hints = registry::compile_hints(one.hints, *record.schema);
      if (!hints) return hints.error();
      implementation->hints = *std::move(hints);
      implementation->backend = backend;
      if (!one.available) {
        implementation->capability.machine = registry::Reason::backend_unavailable;
        implementation->capability.machine_text = one.reason;
      }
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

}  // namespace

Result<PolicyCheck> check_policy(std::string_view text, std::string_view name,
                                 const PolicyCheckOptions& options, const PolicySet& now,
                                 const registry::RegistrySnapshotPtr& known,
                                 std::chrono::sys_seconds today, const PolicyValidator& approve) {
  Result<registry::RegistrySnapshotPtr> machine =
      options.machine.empty() ? Result(known) : described(options.machine);
  if (!machine) return machine.error();
  const registry::RegistrySnapshot& registry = **machine;
  const Names names = options.strict_names      ? Names::strict_with_deny
                      : options.machine.empty() ? Names::lenient
                                                : Names::strict;
  auto policy = parse_policy(text, name, &registry, names);
  if (!policy) return policy.error();
  (void)mark_expired(*policy, today);
  if (Status status = approve(*policy); !status.ok()) return status;
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
  for (EffectChange& change : compare(now, next, registry)) {
    check.changes.push_back({std::move(change.op), std::move(change.when), std::move(change.from),
                             std::move(change.to), std::move(change.by)});
  }
  return check;
}

}  // namespace opmux::policy
