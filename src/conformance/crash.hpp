#pragma once

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

}  // namespace opmux::conformance
