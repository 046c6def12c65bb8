#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/decide/decision.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/packed_constant.hpp"
#include "dispatch/plan/prepared_cache.hpp"
#include "schema/arguments.hpp"

namespace opmux::dispatch {

/// The result of running one candidate.
struct Attempt {
  Code outcome = Code::ok;
  std::string text;      ///< error text of the implementation
  PreparedPtr prepared;  ///< prepared state it ran with; may be null
  PackPtr pack;          ///< packed constant it ran with; may be null
  uint32_t left = 0;     ///< bits of base::kAllStates that it left changed, which were restored
  bool stopped = false;  ///< the program ends the call (an interrupt); not counted, nothing follows
  uint64_t transform_ns = 0;  ///< time spent on transforms; see attempt_transformed()
};

/// Runs a candidate on a frame: sets up pack, prepared state and workspace, then runs the kernel.
/// Does not count the outcome. Restores states of the thread and the process that the
/// implementation left changed: the floating-point mode after each run, those that need system
/// calls after some (see states_to_compare()).
Attempt attempt(const RankedCandidate& plan, const schema::Signature& signature, StackFrame& frame);

/// attempt() with the plan's transforms: copies the tensors first, and copies the results back
/// afterwards. `clock` measures the copying; may be null.
Attempt attempt_transformed(const RankedCandidate& plan, const schema::Signature& signature,
                            const CallSettings& settings, const base::Clock* clock);

/// Puts the packed copy of the call's constant, or the implementation's object of the instance that
/// the call goes through, into the frame, and makes it on first use. Does nothing if the call has
/// neither or the implementation has no create(). Fails with the implementation's outcome, and with
/// `declined` if the implementation needs an instance and there is none.
Status load_pack(const RankedCandidate& plan, const schema::Signature& signature, opmux_call& call,
                 PackPtr& pack);

/// The next step after an outcome other than ok.
enum class Next : uint8_t { give_up, next_candidate, retry };

/// Chooses the next step by outcome class. `retried`: this candidate was already retried once.
Next after(Code outcome, bool strict, bool retried, const registry::OperatorRecord& op,
           const registry::ImplementationRecord& implementation,
           const schema::Arguments& arguments);

/// True if an output overlaps an input in memory, or if the operator is opaque. A failed
/// implementation may then have changed its inputs, so no other implementation may run on them.
bool inputs_may_be_spoilt(const schema::Schema& schema, const schema::Arguments& arguments);

/// Logs that the call falls back to the next candidate, and why.
void log_fallback(const OperatorSlot& slot, const registry::ImplementationRecord& implementation,
                  Code outcome, std::string_view why);

/// The states to compare before and after a run on the slow path. All of them after a failure, if
/// the implementation has left one changed, and in the runs number 1, 2, 4, 8 and so on.
uint32_t states_to_compare(const registry::ImplementationRecord& implementation,
                           bool after_failure);

/// Logs the states that an implementation left changed, and makes later plans restore them.
/// Returns the text of the event; empty if there is no memory for it.
std::string note_left(const OperatorSlot& slot,
                      const registry::ImplementationRecord& implementation, uint32_t left);

/// Increments the counter for an outcome; ok counts as a call.
void count(ImplementationCounters& counters, Code outcome);

/// Runs the operator's reference implementation, independent of normal calls: the run is not
/// counted, nothing is cached, there is no fallback, and only the calling thread is used. Policy
/// rules that require or prefer implementations are ignored, but a denied reference does not run.
/// Fails with `no_candidate`, "dispatch.no_reference", if no reference can run; otherwise returns
/// the outcome of the reference. `took_ns`, if not null, receives the duration of a run that ended
/// ok.
Status run_reference(OperatorSlot& slot, const schema::Arguments& arguments, uint32_t tag,
                     uint64_t* took_ns = nullptr);

}  // namespace opmux::dispatch
