#include "dispatch/decide/evaluation.hpp"

#include <algorithm>
#include <optional>

#include "dispatch/decide/verifier.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"
#include "registry/implementation/architecture.hpp"
#include "registry/implementation/can_run.hpp"

namespace opmux::dispatch {
namespace {

using registry::ImplementationRecord;
using registry::Reason;

/// Refuses a call that sets an argument which was added to the schema after the implementation was
/// built.
Reason check_known_arguments(const ImplementationRecord& implementation,
                             const schema::Signature& signature, std::string& text) {
  const schema::Schema& schema = *signature.schema;
  for (size_t i = implementation.arg_count; i < schema.args.size(); ++i) {
    if (has_default(schema.args[i], signature.arguments->tags[i], signature.arguments->values[i])) {
      continue;
    }
    text =
        "it was built before argument " + schema.args[i].name + " existed, and this call sets it";
    return Reason::schema_argument_not_known;
  }
  return Reason::none;
}

/// Asks whether the implementation works on this machine. Its probe is code of the implementation,
/// which is journalled like all of it.
Reason check_machine(const ImplementationRecord& implementation, std::string& text) {
  const bool asks = implementation.probe != nullptr && implementation.backend->available() &&
                    !implementation.probe->answered();
  std::optional<PreparationGuard> inside;
  if (asks) inside.emplace(implementation, crash::Phase::is_available);
  return registry::obstacle_of_machine(implementation, text);
}

Reason check_surroundings(const ImplementationRecord& implementation,
                          const schema::Signature& signature, std::string& text) {
  if (implementation.needs_instance && !signature.arguments->has_instance()) {
    text = "it keeps state in an instance; call it through one (Operator::instance)";
    return Reason::caps_instance;
  }
  const uint32_t ambient = signature.ambient;
  if ((ambient & schema::kDeterministic) != 0 && !implementation.has(OPMUX_IMPL_DETERMINISTIC)) {
    text = "deterministic results are required, and it does not guarantee them";
    return Reason::caps_deterministic;
  }
  if ((ambient & schema::kCapturing) != 0 && !implementation.has(OPMUX_IMPL_CAPTURE_SAFE)) {
    text = "a graph is being captured, and it is not capture-safe";
    return Reason::caps_capture_safe;
  }
  return Reason::none;
}

/// True if a candidate whose capabilities refuse the tensors accepts them after transforms.
bool transform(const schema::Signature& signature, uint8_t allowed, CandidateVerdict& verdict) {
  if (allowed == 0 || signature.schema->opaque) return false;
  TransformedArguments arguments(signature);
  if (!arguments.fit(verdict.implementation->capability, allowed)) return false;
  verdict.check = nullptr;
  verdict.transforms = arguments.transforms();
  verdict.score = std::max(0.0, verdict.score - cost_of(verdict.transforms));
  return true;
}

Reason verify(const schema::Signature& signature, VerifierReads& reads, CandidateVerdict& verdict) {
  if (!verdict.transforms.any()) {
    return run_verifier(*verdict.implementation, signature, reads, verdict.text);
  }
  const TransformedArguments arguments(signature, verdict.transforms);
  return run_verifier(*verdict.implementation, arguments.signature(), reads, verdict.text);
}

void judge(const EvaluationInput& input, const schema::Signature& signature,
           const policy::PolicyView::Drop& dropped, uint8_t allowed, VerifierReads& reads,
           CandidateVerdict& verdict) {
  const ImplementationRecord& implementation = *verdict.implementation;
  if (implementation.withdrawn.load(std::memory_order_acquire)) {
    verdict.reason = Reason::registry_withdrawn;
    return;
  }
  if (dropped.reason != Reason::none) {
    verdict.reason = dropped.reason;
    verdict.by = dropped.by;
    return;
  }
  // Comes before any code of the implementation is called, because a quarantined one has crashed a
  // process.
  verdict.reason = registry::obstacle_to_use(implementation, verdict.text);
  if (!verdict.accepted()) return;
  // Check the device first, because the availability check may start a driver.
  verdict.check = failing_device(implementation.capability, signature);
  if (verdict.check != nullptr) {
    verdict.reason = verdict.check->reason;
    return;
  }
  verdict.reason = check_machine(implementation, verdict.text);
  if (!verdict.accepted()) return;
  verdict.text = architecture_refusal(implementation, signature);
  if (!verdict.text.empty()) {
    verdict.reason = Reason::caps_arch;
    return;
  }
  verdict.reason = check_known_arguments(implementation, signature, verdict.text);
  if (!verdict.accepted()) return;
  verdict.check = first_failing(implementation.capability, signature);
  if (verdict.check != nullptr && !transform(signature, allowed, verdict)) {
    verdict.reason = verdict.check->reason;
    return;
  }
  verdict.reason = check_surroundings(implementation, signature, verdict.text);
  if (!verdict.accepted()) return;
  verdict.reason = verify(signature, reads, verdict);
  if (!verdict.accepted() || input.health == nullptr) return;
  health::HealthView::Answer answer = input.health->ask(implementation, signature, input.now);
  verdict.reason = answer.reason;
  if (!verdict.accepted()) verdict.text = std::move(answer.text);
}

/// Compares by tier, score and priority in this call, then by position, which is the order of ids.
bool stands_before(const std::vector<CandidateVerdict>& verdicts, uint16_t a, uint16_t b) {
  const CandidateVerdict &left = verdicts[a], &right = verdicts[b];
  if (left.tier != right.tier) return left.tier < right.tier;
  if (left.score != right.score) return left.score > right.score;
  return left.priority() != right.priority() ? left.priority() > right.priority() : a < b;
}

/// Sorts the accepted candidates by insertion. Few candidates have a boost or a hint, so most are
/// already in order.
void order_accepted(const std::vector<uint16_t>& by_priority, Evaluation& decision) {
  std::vector<uint16_t>& order = decision.order;
  const auto before = [&](uint16_t a, uint16_t b) {
    return stands_before(decision.verdicts, a, b);
  };
  for (const uint16_t i : by_priority) {
    if (!decision.verdicts[i].accepted()) continue;
    const bool last = order.empty() || !before(i, order.back());
    order.insert(last ? order.end() : std::upper_bound(order.begin(), order.end(), i, before), i);
  }
}

/// Compares the candidates of the best tier by the rows about the call.
tune::RowIndex::Comparison compare_measured(const tune::RowIndex& tuning, uint32_t answer,
                                            const std::vector<CandidateVerdict>& verdicts,
                                            const std::vector<uint16_t>& order) {
  std::vector<uint32_t> candidates;
  for (const uint16_t index : order) {
    if (verdicts[index].tier != verdicts[order[0]].tier) break;
    candidates.push_back(verdicts[index].implementation->number);
  }
  return tuning.compare(answer, candidates);
}

/// The winner if no breaker were open; nullopt if that is the current winner.
std::optional<uint16_t> first_open(const EvaluationInput& input, uint32_t answer,
                                   const std::vector<CandidateVerdict>& verdicts) {
  const auto is_open = [](const CandidateVerdict& verdict) {
    return verdict.reason == Reason::health_open;
  };
  if (std::ranges::none_of(verdicts, is_open)) return std::nullopt;
  std::vector<uint16_t> order;
  for (const uint16_t i : input.policy->by_priority()) {
    if (verdicts[i].accepted() || is_open(verdicts[i])) order.push_back(i);
  }
  std::ranges::sort(order, [&](uint16_t a, uint16_t b) { return stands_before(verdicts, a, b); });
  size_t first = 0;
  if (answer != 0)
    first = tune::fastest(compare_measured(*input.tuning, answer, verdicts, order).speeds);
  return verdicts[order[first]].accepted() ? std::nullopt : std::optional(order[first]);
}

/// Moves the candidate of the best tier that was measured to be the fastest to the front.
void apply_tuning(const tune::RowIndex& tuning, uint32_t answer, Evaluation& decision) {
  if (decision.order.size() < 2) return;
  const auto found = compare_measured(tuning, answer, decision.verdicts, decision.order);
  for (size_t i = 0; i < found.rows.size(); ++i)
    decision.verdicts[decision.order[i]].row = found.rows[i];
  const size_t winner = tune::fastest(found.speeds);
  if (winner == 0) return;
  decision.verdicts[decision.order[0]].outrun = true;
  decision.verdicts[decision.order[winner]].tuned = true;
  std::rotate(decision.order.begin(), decision.order.begin() + static_cast<ptrdiff_t>(winner),
              decision.order.begin() + static_cast<ptrdiff_t>(winner) + 1);
}

/// The answer of the rows about this call; 0: there are none.
uint32_t ask_rows(const EvaluationInput& input, const schema::Signature& signature) {
  if (input.tuning == nullptr || input.tuning->empty()) return 0;
  return input.tuning->answer(schema::FactsOf{signature});
}

/// Selects the operator's first reference implementation, for bypassed dispatch.
void take_reference(const schema::Signature& signature, Evaluation& decision) {
  decision.policy = {};
  for (size_t i = 0; i < decision.verdicts.size(); ++i) {
    const ImplementationRecord& one = *decision.verdicts[i].implementation;
    if (one.kind != Kind::reference) continue;
    if (one.needs_instance && !signature.arguments->has_instance()) continue;
    decision.order.assign(1, static_cast<uint16_t>(i));
    return;
  }
}

}  // namespace

void decide(const EvaluationInput& input, const schema::Signature& signature,
            Evaluation& decision) {
  const auto& implementations = input.op->implementations;
  decision.verdicts.resize(implementations.size());
  decision.order.clear();
  decision.reads.clear();
  decision.rests.reset();
  decision.picked = false;
  decision.selector_problem.clear();
  decision.lock = LockVerdict::free;
  decision.locked = nullptr;
  for (size_t i = 0; i < implementations.size(); ++i)
    decision.verdicts[i].start(*implementations[i]);
  if (input.disabled) return take_reference(signature, decision);
  input.policy->evaluate(signature, decision.policy);
  for (size_t i = 0; i < implementations.size(); ++i) {
    CandidateVerdict& verdict = decision.verdicts[i];
    verdict.hint = decision.policy.hints[i];
    verdict.tier = decision.policy.tiers[i];
    verdict.score = decision.policy.scores[i];
    judge(input, signature, decision.policy.drops[i], decision.policy.transforms, decision.reads,
          verdict);
  }
  order_accepted(input.policy->by_priority(), decision);
  const uint32_t answer = ask_rows(input, signature);
  decision.rests = first_open(input, answer, decision.verdicts);
  if (answer != 0) apply_tuning(*input.tuning, answer, decision);
  if (input.selector != nullptr) apply_selector(*input.selector, signature, decision);
  if (input.lock != nullptr) apply_lock(*input.lock, signature, decision);
}

schema::Dependencies dependencies_of(const schema::Schema& schema,
                                     const registry::ImplementationRecord& implementation) {
  schema::Dependencies own;
  add_dependencies(implementation.capability, own);
  add_dependencies(implementation.hints, own);
  if (implementation.kernel.verify != nullptr) {
    for (const schema::Fact& fact : implementation.verify_reads) own.add(fact);
  }
  if (implementation.recorded != nullptr) {
    for (const schema::Fact& fact : implementation.recorded->facts()) own.add(fact);
  }
  if (!implementation.has(OPMUX_IMPL_DETERMINISTIC)) {
    own.add(*resolve_fact(schema, schema::FactKind::ambient, "deterministic"));
  }
  if (!implementation.has(OPMUX_IMPL_CAPTURE_SAFE)) {
    own.add(*resolve_fact(schema, schema::FactKind::ambient, "capturing"));
  }
  if (implementation.needs_instance) {
    own.add(*resolve_fact(schema, schema::FactKind::ambient, "instance"));
  }
  for (size_t i = implementation.arg_count; i < schema.args.size(); ++i) {
    add_known_default(schema, i, own);
  }
  return own;
}

schema::Dependencies dependencies_of(const EvaluationInput& input) {
  schema::Dependencies all = input.policy->dependencies();
  const schema::Schema& schema = *input.op->schema;
  for (const auto& implementation : input.op->implementations) {
    all.add(dependencies_of(schema, *implementation));
    if (input.health != nullptr) input.health->add_dependencies(*implementation, schema, all);
  }
  if (input.tuning != nullptr) tune::RowIndex::add_dependencies(input.tuning, all);
  if (input.policy->may_transform()) add_transform_facts(schema, all);
  if (input.selector != nullptr) add_dependencies(*input.selector, schema, all);
  const LockedClasses* const locked = input.lock == nullptr ? nullptr : input.lock->of(schema.name);
  if (locked != nullptr) all.add(locked->dependencies());
  return all;
}

std::string describe(const CandidateVerdict& verdict, const schema::Signature& signature) {
  if (verdict.check != nullptr) return describe_failure(*verdict.check, signature);
  if (verdict.by.layer != nullptr) return "by " + policy::describe(verdict.by);
  return verdict.text;
}

Status nothing_left(const EvaluationInput& input, const Evaluation& decision,
                    const schema::Signature& signature) {
  const bool strict = decision.policy.strict && input.lock != nullptr;
  if (std::string why = strict ? describe_deviation(*input.lock, decision, signature) : "";
      !why.empty()) {
    return no_deviation(why, decision.lock);
  }
  std::string text = "no implementation of " + input.op->schema->name + " is left";
  for (const policy::Origin& origin : decision.policy.requires_by) {
    text += "; required by " + policy::describe(origin);
  }
  for (const CandidateVerdict& verdict : decision.verdicts) {
    text += "; " + verdict.implementation->id + ": " + std::string(code_of(verdict.reason)) + " " +
            describe(verdict, signature);
  }
  if (decision.verdicts.empty()) text += ": none is registered";
  return {Code::no_candidate, "dispatch.no_candidate", std::move(text)};
}

}  // namespace opmux::dispatch
