#pragma once

#include "reference.hpp"

#include "ambient.hpp"
#include "dispatcher.hpp"
#include "scope_object.hpp"

namespace opmux {
class Facts;
}

/// Calls of dispatchable functions through the engine. All functions but ask_verifier() need the
/// GIL.
namespace opmux::python {

/// The bits of a context that hold the number of the scope; the others are ambient facts.
inline constexpr uint64_t kScopeBits = ~uint64_t{0xFFFFFFFFu};

/// The context of a call: the scope of Python around it, or that of the thread, and the ambient
/// facts of the thread, of torch and of the scope.
inline uint64_t context_of(const CurrentScope& around) {
  TorchModes modes;
  uint64_t context = dispatch::context_of_thread() & ~uint64_t{added_ambient};
  context |= torch_ambient(modes);
  if (around.content == nullptr) return context;
  return (context & ~kScopeBits) | around.content->ambient |
         uint64_t{around.content->scope.number()} << 32;
}

/// Counts a call that ended ok and that the engine did not run. All calls of dispatchable functions
/// hold the GIL, so that no other thread changes the number.
inline void count_call(const dispatch::OpaqueDecision& decision) {
  decision.calls->store(decision.calls->load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
}

/// Runs the candidates of a decision.
PyObject* run_by_engine(Dispatcher& own, const dispatch::OpaqueDecision& decision,
                        const GivenArguments& given);

/// Tells the engine how `target`, the winner of the decision, has ended: `result` is null with an
/// exception set, or NotImplemented, whose reference is taken. Other candidates may run.
PyObject* end_by_engine(Dispatcher& own, const dispatch::OpaqueDecision& decision,
                        DispatchTarget& target, const GivenArguments& given, PyObject* result);

/// Makes a call: decides unless a cached decision fits, caches the decision and runs it. `asked` is
/// the Python object that answers for the verifiers (`Asked` of `_dispatch_family.py`).
PyObject* decide_and_run(Dispatcher& own, const GivenArguments& given, PyObject* asked);

/// The decision that a call would make, with a reason for every candidate.
Explanation explain_call(const Dispatcher& own, const GivenArguments& given, PyObject* asked);

/// The answer of the verifier of an implementation about the call that this thread decides: empty
/// to accept, or the reason to refuse. Accepts if the thread decides about no call of such a
/// function. Throws std::runtime_error if the verifier is broken.
std::string ask_verifier(const std::string& id, const Facts& facts);

}  // namespace opmux::python
