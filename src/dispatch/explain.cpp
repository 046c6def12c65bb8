#include "dispatch/explain.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/explain_rows.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

std::string number(double value) {
  std::array<char, 32> text;
  const int size = std::snprintf(text.data(), text.size(), "%g", value);
  return {text.data(), static_cast<size_t>(size)};
}

std::string shape_text(const TensorView& tensor) {
  std::string text = name_of(tensor.dtype()) + "[";
  for (int d = 0; d < tensor.rank(); ++d) {
    text += (d == 0 ? "" : ",") + std::to_string(tensor.dim(d));
  }
  return text + "]";
}

std::string value_text(const schema::ArgSpec& spec, ArgTag tag, ArgValue value) {
  switch (tag) {
    case ArgTag::tensor: return shape_text(*value.tensor);
    case ArgTag::floating: return number(value.f64);
    case ArgTag::logical: return value.i64 != 0 ? "true" : "false";
    case ArgTag::enumeration: return spec.words[static_cast<size_t>(value.i64)];
    case ArgTag::integer: return std::to_string(value.i64);
    case ArgTag::string:
      return "\"" + std::string(static_cast<const char*>(value.list->data), value.list->size) +
             "\"";
    default: return "(" + std::to_string(value.list->size) + " items)";
  }
}

/// The registered priority and, apart from it, the hint that replaces it in this call.
std::string describe_priority(const CandidateVerdict& verdict) {
  std::string text = "priority " + std::to_string(verdict.implementation->priority);
  if (verdict.hint == nullptr) return text;
  const Hint& hint = verdict.hint->hint;
  return text + ", hint " + std::to_string(hint.priority) + " for " + hint.range();
}

std::string why_accepted(const CandidateVerdict& verdict, const Evaluation& decision, size_t place,
                         const schema::Schema& schema, const EvaluationInput& input) {
  std::string text = describe_priority(verdict);
  if (verdict.score != verdict.priority()) text += ", score " + number(verdict.score);
  if (verdict.transforms.any()) text += ", by way of " + describe(verdict.transforms, schema);
  if (verdict.outrun) {
    text += ", first by score, slower here by measurement";
  } else if (!verdict.tuned && verdict.row != nullptr) {
    text += ", " + describe_row(input, *verdict.row);
  }
  if (place != 0) return text;
  if (decision.policy.has_list && verdict.tier == 0) {
    text += ", first by " + policy::describe(decision.policy.list_by);
  }
  if (verdict.tuned) {
    text +=
        verdict.row == nullptr ? ", measured fastest" : ", " + describe_row(input, *verdict.row);
  }
  if (decision.picked) text += ", picked by the selector";
  if (decision.lock == LockVerdict::kept) text += ", locked";
  const size_t count = decision.order.size();
  return text + (count == 1 ? ", the only one accepted"
                            : ", first of " + std::to_string(count) + " accepted");
}

Candidate accepted_candidate(const Evaluation& decision, size_t place, const schema::Schema& schema,
                             const EvaluationInput& input, const std::string& remark) {
  const CandidateVerdict& verdict = decision.verdicts[decision.order[place]];
  const bool last_resort = place != 0 && place + 1 == decision.order.size() &&
                           verdict.implementation->kind == Kind::reference;
  return {
      verdict.implementation->id,
      place == 0    ? "chosen"
      : last_resort ? "last resort"
                    : "accepted",
      "",
      why_accepted(verdict, decision, place, schema, input) + (remark.empty() ? "" : "; " + remark),
      verdict.implementation->priority,
      verdict.score,
      describe(verdict.transforms, schema),
      verdict.shown_hint(),
      verdict.row == nullptr ? std::nullopt : std::optional(measurement_of(input, *verdict.row))};
}

/// Attributes that describe() reported about the constant that the candidate packed last, or about
/// its newest instance; empty if there is none.
std::string instance_remark(const CandidateParts& candidate) {
  const std::string text = candidate.counters->instance.with(describe_instance);
  if (text.empty()) return text;
  return (candidate.implementation->needs_instance ? "instance: " : "packed: ") + text;
}

void add_candidates(const Evaluation& decision, const schema::Signature& signature,
                    const EvaluationInput& input, const CandidateTable& candidates,
                    Explanation& explanation) {
  const health::HealthView* const health = input.health;
  for (size_t place = 0; place < decision.order.size(); ++place) {
    const auto& implementation = *decision.verdicts[decision.order[place]].implementation;
    std::string remark = health == nullptr ? "" : health->remark(implementation, signature);
    const std::string instance = instance_remark(candidates[decision.order[place]]);
    if (!instance.empty()) remark += (remark.empty() ? "" : "; ") + instance;
    explanation.candidates.push_back(
        accepted_candidate(decision, place, *signature.schema, input, remark));
  }
  for (const CandidateVerdict& verdict : decision.verdicts) {
    if (verdict.accepted()) continue;
    Candidate refused{verdict.implementation->id,
                      "refused",
                      std::string(code_of(verdict.reason)),
                      describe(verdict, signature),
                      verdict.implementation->priority,
                      verdict.score,
                      "",
                      verdict.shown_hint()};
    if (const auto* const row = row_of_refused(input, decision, verdict, signature)) {
      refused.measured = measurement_of(input, *row);
      refused.reason += "; " + describe_row(input, *row);
    }
    explanation.candidates.push_back(std::move(refused));
  }
}

/// Removes candidates that declined exactly these arguments before, as a call does.
void drop_declined(const CompiledOperator& state, const schema::Arguments& arguments,
                   Evaluation& decision) {
  if (!state.declines().any()) return;
  const uint64_t hash = exact_hash(arguments);
  while (decision.order.size() > 1) {
    CandidateVerdict& first = decision.verdicts[decision.order[0]];
    if (!state.declines().has(hash, first.implementation->number)) return;
    first.reason = registry::Reason::call_declined;
    first.text = "it declined these arguments in an earlier call";
    decision.order.erase(decision.order.begin());
  }
}

/// A fact as explain names it. The rank of the process has its value, which the call does not show.
std::string shown_fact(const schema::Signature& signature, schema::Fact fact) {
  const std::string name = describe(*signature.schema, fact);
  if (!schema::is_rank(fact)) return name;
  const int64_t value = value_of(signature, fact);
  return value == schema::kAbsent ? name + " (not stated)" : base::concat(name, " = ", value);
}

void add_dependencies(const schema::Signature& signature, const schema::Dependencies& dependencies,
                      Explanation& explanation) {
  const schema::Schema& schema = *signature.schema;
  const std::vector<schema::Fact> facts = dependencies.facts();
  for (const schema::Fact& fact : facts) {
    explanation.depends_on.push_back(shown_fact(signature, fact));
  }
  const auto mentioned = [&](uint8_t dim) {
    return std::ranges::find(facts, schema::Fact{schema::FactKind::dim, dim}) != facts.end();
  };
  if (schema.has_leading() && !mentioned(schema::kRowsDim)) {
    explanation.independent.emplace_back("rows");
  }
  for (size_t dim = 0; dim < schema.dims.size(); ++dim) {
    if (!mentioned(static_cast<uint8_t>(dim))) explanation.independent.push_back(schema.dims[dim]);
  }
}

/// Compiles the published policy if it has the same effect as the state's policy, so that rules are
/// shown with the names and positions of the latest policy text. Null if the effect differs.
std::shared_ptr<const policy::OperatorPolicy> latest_words(const OperatorSlot& slot,
                                                           const CompiledOperator& state,
                                                           uint64_t context) {
  const CompileInputs& sources = state.sources();
  const std::shared_ptr<const policy::PolicySet> latest = slot.engine->policies();
  if (latest->hash_for(slot.schema->name) != sources.policy_hash) return nullptr;
  const auto serial = static_cast<uint32_t>(context >> 32);
  return policy::OperatorPolicy::compile(
      *latest, serial == 0 ? nullptr : slot.engine->dependencies().scopes->find(serial),
      sources.op);
}

}  // namespace

Explanation not_explained(const OperatorSlot& slot, const Status& status) {
  Explanation none;
  none.op = slot.name();
  none.note = status.to_string();
  return none;
}

std::string describe_instance(const Attributes& attributes) {
  std::string text;
  for (const auto& [key, value] : attributes) {
    if (!text.empty()) text += ", ";
    text.append(key).append(" ").append(value);
  }
  return text;
}

std::string describe_arguments(const schema::Schema& schema, const schema::Arguments& arguments) {
  std::string text;
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const ArgTag tag = arguments.tags[i];
    if (tag == ArgTag::none) continue;
    if (tag == ArgTag::tensor && !arguments.values[i].tensor->present()) continue;
    text += (text.empty() ? "" : " ") + schema.args[i].name + "=" +
            value_text(schema.args[i], tag, arguments.values[i]);
  }
  return text;
}

Result<Explanation> explain(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                            uint32_t tag) {
  if (Status refused = refuse_reentry(slot); !refused.ok()) return refused;
  load_waiting_plugins(slot);
  CheckedArguments checked;
  if (Status status = check(*slot.schema, site, values, checked); !status.ok()) return status;
  const SlowPathGuard mark;
  if (mark.depth() == kMaxDepth) return too_deep(slot);
  CompiledOperator* state = slot.current.load(std::memory_order_acquire);
  if (state == nullptr) return withdrawn(slot);
  const uint64_t context = mark.block().context;
  const schema::Signature signature{slot.schema.get(),
                                    &checked.arguments,
                                    &checked.dims,
                                    static_cast<uint32_t>(context),
                                    tag,
                                    slot.ranks,
                                    default_threads(slot.engine->dependencies().threads)};
  const DecisionCache& space = space_of(slot, *state, context);
  const auto relabelled = latest_words(slot, *state, context);
  EvaluationInput input = space.input();
  if (relabelled != nullptr) input.policy = relabelled.get();
  Evaluation decision;
  input.now = true;
  decide(input, signature, decision);
  drop_declined(*state, checked.arguments, decision);

  Explanation explanation;
  explanation.op = slot.name();
  explanation.arguments = describe_arguments(*slot.schema, checked.arguments);
  explanation.device = name_of(device_of(checked.arguments));
  explanation.generation = slot.engine->generation();
  explanation.strict = decision.policy.strict;
  add_candidates(decision, signature, input, *space.candidates(), explanation);
  schema::Dependencies dependencies = space.dependencies();
  for (const RecordedRead& read : decision.reads.facts) dependencies.add(read.fact);
  add_dependencies(signature, dependencies, explanation);
  for (const OutsideRead& read : decision.reads.outside) {
    explanation.depends_on.push_back(read.what);
  }
  if (!decision.order.empty()) explanation.chosen = explanation.candidates.front().id;
  if (space.input().lock != nullptr) {
    explanation.note = describe_deviation(*space.input().lock, decision, signature);
  }
  if (space.input().disabled) explanation.note = "OPMUX_DISABLE is set: no decision is made";
  if (decision.order.empty() && explanation.note.empty()) {
    explanation.note = "no implementation of " + explanation.op + " is left";
  }
  add_tuning(input, decision, signature, explanation);
  if (const auto off = slot.engine->plugins().switched_off(); !off.empty()) {
    explanation.note += explanation.note.empty() ? "" : "; ";
    explanation.note += "backends that are switched off and not opened: " + base::join(off, ", ");
  }
  return explanation;
}

}  // namespace opmux::dispatch
