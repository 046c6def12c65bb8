#pragma once

#include <csignal>

#include <cfenv>

namespace opmux::base {

/// Restores the calling thread's floating-point environment and signal mask in the destructor.
/// Foreign code may change both; for example, loading a library that was linked with -ffast-math
/// changes the floating-point environment.
class ThreadStateGuard {
 public:
  ThreadStateGuard();
  ~ThreadStateGuard();
  ThreadStateGuard(const ThreadStateGuard&) = delete;
  ThreadStateGuard& operator=(const ThreadStateGuard&) = delete;

 private:
  std::fenv_t floating_point_{};
  sigset_t signals_{};
};

}  // namespace opmux::base
