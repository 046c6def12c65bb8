#pragma once

namespace opmux::conformance {

/// While one lives, a thread inside survives() outlives faults. Faults elsewhere end the process
/// as they would have.
class CrashGuard {
 public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
};

/// Runs fn(context); false if it raised a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL) on this thread.
/// Nothing between here and the fault is unwound.
bool survives(void (*fn)(void* context), void* context);

template <class Fn>
bool survives(const Fn& fn) {
  return survives([](void* context) { (*static_cast<const Fn*>(context))(); },
                  const_cast<Fn*>(&fn));
}

}  // namespace opmux::conformance
