#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cfenv>
#include <csignal>
#include <cstdint>

namespace opmux::base {

/// A number that differs between a process and its forked children; at least 1.
uint64_t process_number();

/// Registers a handler that runs in every forked child before fork() returns there. Handlers must
/// not take locks. A handler stays registered until forget_fork_handler().
void at_fork_in_child(void (*handler)(void* context), void* context);
/// Unregisters the handlers with this context.
void forget_fork_handler(void* context);

/// A lock for rare paths that is free in a forked child even if another thread of the parent held
/// it at the fork. Replace the protected data as a whole (build aside, then swap), so that a fork
/// in the middle leaves it consistent.
class ForkMutex {
 public:
  void lock();
  void unlock();
  bool try_lock();

 private:
  bool take(uint64_t mine);
  std::atomic<uint64_t> owner_{0};  ///< process_number() of the holder; 0: free
};

/// Blocks signals in the calling thread, and in threads that it starts meanwhile, because the
/// program's signal handlers expect to run on the program's threads. Fault signals stay unblocked:
/// a blocked fault would kill the process without calling its handler.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

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

/// The crash::HazardSlotPlaces that say which implementation the calling thread is running; null
/// before the thread's first call. A thread pool lends the caller's marks to its threads while they
/// work for the caller, so that a crash is attributed to the right implementation.
extern thread_local constinit const void* thread_marks __attribute__((tls_model("initial-exec")));

/// Uses the marks of another thread for the lifetime of this object.
class LentHazardSlot {
 public:
  explicit LentHazardSlot(const void* marks) : before_(thread_marks) { thread_marks = marks; }
  ~LentHazardSlot() { thread_marks = before_; }
  LentHazardSlot(const LentHazardSlot&) = delete;
  LentHazardSlot& operator=(const LentHazardSlot&) = delete;

 private:
  const void* before_;
};

}  // namespace opmux::base
