#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <opmux/detail/call_site.hpp>
#include <opmux/detail/export.hpp>
#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

/// Calls of opaque operators, for language bindings. Internal.
///
/// The schema of an opaque operator has a line `#! opaque`. The binding knows the arguments and the
/// results of such a call; the engine gets the tensors among the arguments as facts. The engine
/// decides, asks circuit breakers, counts outcomes and chooses fallbacks; the binding runs an
/// implementation when the engine says so, and keeps its result.
namespace opmux::dispatch {

struct OperatorSlot;
struct OpaqueChoice;

/// How an implementation that the binding ran has ended.
struct OpaqueOutcome {
  Code code = Code::ok;
  std::string text = {};  ///< why, if the code is not ok
  bool stopped = false;   ///< the program ends the call, as by an interrupt: nothing else runs
};

/// Runs implementations of one call.
class OpaqueRunner {
 public:
  OpaqueRunner(const OpaqueRunner&) = delete;
  OpaqueRunner& operator=(const OpaqueRunner&) = delete;
  /// Runs the implementation with this id.
  virtual OpaqueOutcome run(const std::string& id) = 0;

  /// The tensors that the last implementation returned; false if it returned anything else. They
  /// are valid until the call ends.
  virtual bool returned(std::vector<TensorView>& tensors) {
    static_cast<void>(tensors);
    return false;
  }
  /// Runs the implementation with this id for a comparison, and returns what it returned as
  /// returned() does; false also if it failed. The result of the call stays as it is.
  virtual bool run_again(const std::string& id, std::vector<TensorView>& tensors) {
    static_cast<void>(id);
    static_cast<void>(tensors);
    return false;
  }

 protected:
  OpaqueRunner() = default;
  ~OpaqueRunner() = default;
};

/// A fact of an argument: a kind (OPMUX_FACT_*) and the argument's position in the schema.
struct OpaqueFact {
  uint32_t kind = 0;
  uint32_t argument = 0;
};

/// A decision about calls of an opaque operator. It is valid while is_current(), for calls in the
/// same scope that agree in `facts`, in the facts of `ambient_read` and in those that the verifiers
/// of the binding read.
struct OpaqueDecision {
  std::shared_ptr<const OpaqueChoice> choice;  ///< the candidates, for run_opaque()
  std::string first;                           ///< id of the winner; empty if nothing can run
  std::vector<OpaqueFact> facts;               ///< facts that the decision depends on
  uint32_t ambient_read = 0;  ///< ambient facts that it depends on, as OPMUX_AMBIENT_*
  bool cacheable = false;     ///< `facts` and `ambient_read` have all of them
  /// Calls may run `first` without the engine, and add 1 to `calls` if it ended ok: no breaker is
  /// armed, calls are not timed and not sampled.
  bool direct = false;
  std::atomic<uint64_t>* calls = nullptr;        ///< counter of `first`
  const std::atomic<uint64_t>* epoch = nullptr;  ///< of the operator
  uint64_t decided_in = 0;                       ///< the epoch of the decision

  bool is_current() const { return epoch->load(std::memory_order_acquire) == decided_in; }
};

/// The number that changes whenever decisions about an operator may change.
OPMUX_API const std::atomic<uint64_t>& epoch_of(const OperatorSlot& slot) noexcept;

/// The scope and the ambient facts of the calling thread, in one word.
OPMUX_API uint64_t context_of_thread() noexcept;

/// Decides about a call with a tag (see Tag; 0: none). Runs verifiers. The status of a decision
/// without a winner comes from run_opaque().
OPMUX_API Result<OpaqueDecision> decide_opaque(OperatorSlot& slot, const CallSite& site,
                                               const ArgValue* values, uint32_t tag);

/// Runs the candidates of a decision until one completes the call. `failed`, if not null, is the
/// outcome of the winner, which the caller has run already. `report` may be null; its field
/// `cached` is left to the caller.
OPMUX_API Status run_opaque(OperatorSlot& slot, const OpaqueDecision& decision,
                            const CallSite& site, const ArgValue* values, OpaqueRunner& runner,
                            const OpaqueOutcome* failed, CallReport* report);

}  // namespace opmux::dispatch
