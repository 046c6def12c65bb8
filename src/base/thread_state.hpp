#pragma once

#include <csignal>

#include <cfenv>

namespace opmux::base {

/// Restores the calling thread's floating-point environment and signal mask when it goes: foreign
/// code may change both (a library linked with -ffast-math does so while it is loaded).
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
