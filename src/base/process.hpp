#pragma once

#include <atomic>
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

}  // namespace opmux::base
