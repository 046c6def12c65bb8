#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "dispatch/call_frame.hpp"
#include "dispatch/choice.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/packed_constant.hpp"
#include "dispatch/prepared_cache.hpp"

namespace opmux::dispatch {

/// One try of one candidate.
struct Attempt {
  Code outcome = Code::ok;
  std::string text;      ///< what the implementation said
  PreparedPtr prepared;  ///< that it ran with, if any
  PackPtr pack;          ///< the same
};

/// Runs a candidate on a frame: prepared state and workspace first, then the kernel. Counts nothing
/// but prepared states.
Attempt attempt(OperatorSlot& slot, const PlanRecord& plan, const registry::Signature& signature,
                StackFrame& frame);

/// The same around a plan's transforms: copies of the tensors before, results brought back after.
Attempt attempt_transformed(OperatorSlot& slot, const PlanRecord& plan,
                            const registry::Signature& signature, const CallSettings& settings);

/// Puts the packed copy of the call's constant into the frame, if there is one and the
/// implementation makes them; makes it at first use. Fails with the implementation's outcome.
Status load_pack(const PlanRecord& plan, const registry::Signature& signature, opmux_call& call,
                 PackPtr& pack);

/// Memory for a kernel's workspace, kept by the thread; null if there is none to be had. Calls
/// inside calls get memory of their own, which `own` keeps.
void* workspace_for(uint64_t size, bool nested, std::unique_ptr<std::byte[]>& own);

/// What the host does after an outcome that is not ok.
enum class Next : uint8_t { give_up, next_candidate, retry };

/// The table of outcome classes. `retried` says that this candidate was already tried again.
Next after(Code outcome, bool strict, bool retried, const registry::OperatorRecord& op,
           const registry::ImplementationRecord& implementation,
           const registry::Arguments& arguments);

/// Whether something the operator writes shares memory with something it reads: then a second
/// implementation must not run on what the first one left behind.
bool inputs_may_be_spoilt(const registry::Schema& schema, const registry::Arguments& arguments);

/// Says that the next candidate is asked, and why.
void tell_fallback(const OperatorSlot& slot, const registry::ImplementationRecord& implementation,
                   Code outcome, std::string_view why);

/// Adds an outcome to an implementation's counters; ok counts as a call.
void count(ImplementationCounters& counters, Code outcome);

}  // namespace opmux::dispatch
