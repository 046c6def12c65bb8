#include "dispatch/call/attempt.hpp"

#include <bit>

#include "base/memory.hpp"
#include "base/system/thread_state.hpp"
#include "base/text.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

/// Gets or builds the prepared state of a call and puts it into the frame. Does nothing if the
/// implementation has no plan().
Status prepare(const RankedCandidate& plan, const schema::Signature& signature, opmux_call& call,
               PreparedPtr& prepared) {
  if (plan.candidate->prepared == nullptr) return {};
  auto found = plan.candidate->prepared->get(
      prepared_key(*plan.candidate->implementation, signature, call), call);
  if (!found) return found.error();
  prepared = *std::move(found);
  call.prepared = prepared->get();
  return {};
}

/// Returns memory for the workspace of a call: that of the thread, or, for a call inside another
/// one, memory that `own` keeps. Null if there is not enough.
void* workspace_for(uint64_t size, WorkspaceBuffer& own) {
  ThreadBlock& block = own_thread_block();
  // Only the mark in hazard slot 0 protects the buffer of the thread.
  if (block.depth() == 1) return block.workspace.take(size).start;
  own.renew(size);
  return own.start;
}

/// Returns the entry to run: the tap's if calls are sampled. Transformed calls bypass the tap,
/// because it would compare copies of the tensors instead of the caller's.
const registry::RunEntry& entry_of(const RankedCandidate& plan) {
  CallTap* const tap = plan.candidate->tap.get();
  if (tap == nullptr) return plan.candidate->implementation->entry;
  if (!plan.transforms.any()) return tap->entry();
  tap->pass_transformed();
  return plan.candidate->implementation->entry;
}

}  // namespace

Status load_pack(const RankedCandidate& plan, const schema::Signature& signature, opmux_call& call,
                 PackPtr& pack) {
  const schema::Arguments& arguments = *signature.arguments;
  const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
  const int at = packed_argument(implementation, *signature.schema, arguments);
  if (at >= 0) {
    const auto& constant = PackedConstant::of(*arguments.values[static_cast<size_t>(at)].tensor);
    auto found = constant.pack_for(plan, call, static_cast<uint32_t>(at));
    if (!found) return found.error();
    pack = std::move(*found);
    call.instance = pack == nullptr ? nullptr : pack->instance();
  }
  if (!implementation.needs_instance || call.instance != nullptr) return {};
  return {Code::declined, "call.instance", implementation.id + " runs only with an instance"};
}

namespace {

Attempt run_candidate(const RankedCandidate& plan, const schema::Signature& signature,
                      StackFrame& frame) {
  Attempt tried;
  const registry::Kernel& kernel = plan.candidate->implementation->kernel;
  opmux_call& call = frame.call();
  const RunningCallGuard inside(*plan.candidate->implementation);
  plan.candidate->implementation->backend->mark_used();
  Status status = load_pack(plan, signature, call, tried.pack);
  if (status.ok()) status = prepare(plan, signature, call, tried.prepared);
  if (!status.ok()) {
    tried.outcome = outcome_of(static_cast<int32_t>(status.code()));
    tried.text = status.message();
    return tried;
  }
  WorkspaceBuffer own;
  if (kernel.workspace != nullptr) {
    call.workspace_size = kernel.workspace(kernel.user_data, &call);
    if (call.workspace_size != 0) call.workspace = workspace_for(call.workspace_size, own);
    if (call.workspace_size != 0 && call.workspace == nullptr) {
      tried.outcome = Code::resource;
      tried.text = "no memory for " + std::to_string(call.workspace_size) + " bytes of workspace";
      return tried;
    }
  }
  const registry::RunEntry& entry = entry_of(plan);
  tried.outcome = outcome_of(entry.run(entry.user_data, &call));
  if (tried.outcome != Code::ok) tried.text = frame.error().text();
  return tried;
}

}  // namespace

uint32_t states_to_compare(const registry::ImplementationRecord& implementation,
                           bool after_failure) {
  const uint32_t number = implementation.compared.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool all = after_failure || std::has_single_bit(number) ||
                   implementation.left.load(std::memory_order_relaxed) != 0;
  return all ? base::kAllStates : base::kFloatingPoint;
}

Attempt attempt(const RankedCandidate& plan, const schema::Signature& signature,
                StackFrame& frame) {
  const base::StateCheck before(
      states_to_compare(*plan.candidate->implementation, plan.candidate->watch != nullptr));
  Attempt tried = run_candidate(plan, signature, frame);
  tried.left = before.restore();
  return tried;
}

Attempt attempt_transformed(const RankedCandidate& plan, const schema::Signature& signature,
                            const CallSettings& settings, const base::Clock* clock) {
  const auto now = [clock] { return clock == nullptr ? 0 : clock->now_ns(); };
  const uint64_t started = now();
  TransformedArguments arguments(signature, plan.transforms);
  Attempt tried;
  if (!arguments.fill()) {
    tried.outcome = Code::resource;
    tried.text = "no memory for " + describe(plan.transforms, *signature.schema);
    return tried;
  }
  StackFrame frame(*signature.schema, *arguments.signature().arguments, settings);
  const uint64_t copied = now();
  tried = attempt(plan, arguments.signature(), frame);
  const uint64_t ended = now();
  if (tried.outcome == Code::ok) arguments.write_back();
  tried.transform_ns = copied - started + (now() - ended);
  return tried;
}

bool inputs_may_be_spoilt(const schema::Schema& schema, const schema::Arguments& arguments) {
  if (schema.opaque) return true;
  for (size_t written = 0; written < schema.args.size(); ++written) {
    if (!schema.args[written].is_tensor() || !schema.args[written].written()) continue;
    const TensorView& target = *arguments.values[written].tensor;
    if (arguments.tags[written] != ArgTag::tensor || !target.present()) continue;
    for (size_t read = 0; read < schema.args.size(); ++read) {
      if (!schema.args[read].is_tensor() || !schema.args[read].read()) continue;
      if (arguments.tags[read] != ArgTag::tensor || !arguments.values[read].tensor->present()) {
        continue;
      }
      if (schema::overlap(target, *arguments.values[read].tensor)) return true;
    }
  }
  return false;
}

Next after(Code outcome, bool strict, bool retried, const registry::OperatorRecord& op,
           const registry::ImplementationRecord& implementation,
           const schema::Arguments& arguments) {
  if (strict || outcome == Code::device_lost) return Next::give_up;
  if (outcome == Code::declined) return Next::next_candidate;
  if (outcome == Code::invalid_argument) {
    // The schema check passed. Unless this operator's kernels check data, the implementation's
    // verifier should have refused the call, so try the next candidate.
    return op.data_checked ? Next::give_up : Next::next_candidate;
  }
  if (!implementation.has(OPMUX_IMPL_ATOMIC_OUTPUTS) &&
      inputs_may_be_spoilt(*op.schema, arguments)) {
    return Next::give_up;
  }
  return outcome == Code::resource && !retried ? Next::retry : Next::next_candidate;
}

std::string note_left(const OperatorSlot& slot,
                      const registry::ImplementationRecord& implementation, uint32_t left) {
  implementation.left.fetch_or(left, std::memory_order_relaxed);
  std::string text;  // stays empty without memory: the result of the call counts nevertheless
  base::if_memory([&] {
    const std::string names = base::names_of_states(left);
    text = base::concat(implementation.id, " returned with ", names,
                        " changed; opmux restores this after each call");
    slot.engine->dependencies().log->tell(Level::warning, "call.left_state", slot.name(),
                                          implementation.id, names, [&] { return text; });
  });
  return text;
}

void log_fallback(const OperatorSlot& slot, const registry::ImplementationRecord& implementation,
                  Code outcome, std::string_view why) {
  slot.engine->dependencies().log->tell(Level::warning, "call.fell_back", slot.name(),
                                        implementation.id, opmux::name_of(outcome),
                                        [&] { return std::string(why); });
}

void count(ImplementationCounters& counters, Code outcome) {
  const auto add = [](std::atomic<uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  };
  switch (outcome) {
    case Code::ok: add(counters.calls); break;
    case Code::declined: add(counters.declined); break;
    case Code::invalid_argument: add(counters.invalid_argument); break;
    case Code::resource: add(counters.resource); break;
    case Code::device_lost: add(counters.device_lost); break;
    default: add(counters.failed); break;
  }
}

namespace {

using registry::Reason;

/// True if the reference may run. Ignores policy rules that select among implementations, because
/// they apply only to calls of the program; rules that deny the reference count.
bool may_run(Reason reason) {
  return reason == Reason::none || reason == Reason::policy_outside_require ||
         reason == Reason::policy_outside_order || reason == Reason::policy_not_allowed;
}

Status no_reference(const OperatorSlot& slot, std::string_view why) {
  return {
      Code::no_candidate, "dispatch.no_reference",
      base::concat("no reference implementation of ", slot.name(), " can run this call: ", why)};
}

}  // namespace

Status run_reference(OperatorSlot& slot, const schema::Arguments& arguments, uint32_t tag,
                     uint64_t* took_ns) {
  const SlowPathGuard mark;
  if (mark.depth() == kMaxDepth) return too_deep(slot);
  CompiledOperator* state = slot.current.load(std::memory_order_acquire);
  if (state == nullptr) return withdrawn(slot);
  schema::BoundDims dims;
  if (Status status = check_arguments(state->schema(), arguments, dims); !status.ok())
    return status;
  if (Status status = check_data(state->schema(), arguments); !status.ok()) return status;
  const schema::Signature signature{&state->schema(), &arguments, &dims, 0, tag, slot.ranks};
  const DecisionCache& space = space_of(slot, *state, 0);
  Evaluation decision;
  decide(space.input(), signature, decision);
  std::string why = "none is registered";
  for (size_t i = 0; i < decision.verdicts.size(); ++i) {
    const CandidateVerdict& verdict = decision.verdicts[i];
    if (verdict.implementation->kind != Kind::reference) continue;
    if (!may_run(verdict.reason) || verdict.transforms.any()) {
      why = describe(verdict, signature);
      continue;
    }
    StackFrame frame(state->schema(), arguments, {.tag = tag, .max_threads = 1});
    const RankedCandidate plan{0, &(*space.candidates())[i]};
    const base::Clock& clock = *slot.engine->dependencies().clock;
    const uint64_t started = clock.now_ns();
    const Attempt tried = attempt(plan, signature, frame);
    if (took_ns != nullptr) *took_ns = clock.now_ns() - started;
    if (tried.left != 0) note_left(slot, *plan.candidate->implementation, tried.left);
    if (tried.outcome == Code::ok) return {};
    return {tried.outcome, "call." + std::string(opmux::name_of(tried.outcome)), tried.text};
  }
  return no_reference(slot, why);
}

}  // namespace opmux::dispatch
