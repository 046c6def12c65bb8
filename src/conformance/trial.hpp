#pragma once

#include <optional>
#include <string>

#include <opmux/runtime.hpp>

#include "conformance/arena.hpp"
#include "conformance/expected.hpp"
#include "conformance/shaper.hpp"

namespace opmux::conformance {

/// While a CrashGuard exists, survives() catches faults on its thread. Faults in other code go to
/// the previous signal handler.
class CrashGuard {
 public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
};

/// Runs fn(context). Returns false if it raised SIGSEGV, SIGBUS, SIGFPE or SIGILL on this thread.
/// After a fault the stack frames of fn are not unwound, so that no destructors run.
bool survives(void (*fn)(void* context), void* context);

template <class Fn>
bool survives(const Fn& fn) {
  return survives([](void* context) { (*static_cast<const Fn*>(context))(); },
                  const_cast<Fn*>(&fn));
}

/// The result of one implementation on one case.
struct CaseResult {
  bool refused = false;
  bool crashed = false;  ///< the thread's dispatch state is unusable; continue on another
  std::optional<Problem> problem;
};

/// Runs one implementation on cases, several times each, and checks results, memory accesses,
/// determinism, batch invariance and thread safety. Use one Trial per thread.
class Trial {
 public:
  Trial(Runtime& runtime, const Operator& op, const Shaper& shaper, const ImplementationInfo& info)
      : runtime_(&runtime), op_(op), shaper_(&shaper), info_(&info) {
    if (info.own_memory) find_sides();
  }

  /// The thread's policy must be policy(). The arguments must outlive the trial.
  CaseResult run(const Case& c, const Expected& expected);

  /// The policy that must be in force on the thread that calls run().
  Policy policy() const;

 private:
  using Outputs = std::vector<std::vector<std::byte>>;
  struct Run {
    CaseResult verdict;
    Outputs outputs;
    bool done = false;  ///< the call succeeded and wrote nothing out of bounds
  };

  void find_sides();
  Run call(const Case& c, std::byte pattern, CallOptions options, Place& place);
  void judge_outcome(const Case& c, const Status& status, const CallReport& report,
                     const Placed& placed, Run& run) const;
  bool claims(uint32_t flag) const { return (info_->flags & flag) != 0; }
  bool same(const Case& c, const Outputs& a, const Outputs& b) const;
  std::optional<Problem> compare(const Case& c, const Expected& expected, const Run& first,
                                 const Run& second, const char* kind, const char* what) const;
  CaseResult check_again(const Case& c, const Expected& expected, const Run& first);
  CaseResult check_threads(const Case& c, const Expected& expected, const Run& first);
  CaseResult check_batch(const Case& c, const Run& first);
  CaseResult check_callers(const Case& c, const Expected& expected, const Run& first);
  void remember(const Case& c, const Expected& expected, Run first);

  Runtime* runtime_;
  Operator op_;
  const Shaper* shaper_;
  const ImplementationInfo* info_;
  /// The previous successful case, which a concurrent caller repeats; null if there is none.
  const Case* other_ = nullptr;
  const Expected* other_expected_ = nullptr;
  Run other_first_;
  Place place_, other_place_;
  Status no_device_;  ///< why device memory is not available
};

}  // namespace opmux::conformance
