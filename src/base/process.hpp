#pragma once

#include <atomic>
#include <cstdint>

namespace opmux::base {

/// A number that differs between a process and its forked children; at least 1.
uint64_t process_number();

/// Called in every forked child, in the order of registration, before any other code of this
/// library runs there. Handlers take no lock and survive until the process ends.
void at_fork_in_child(void (*handler)(void* context), void* context);
/// Forgets the handlers with this context.
void forget_fork_handler(void* context);

/// A lock for rare paths that a forked child may find held by a thread it does not have: the child
/// starts with it free. What it protects is replaced as a whole (built aside, then swapped), so a
/// fork in between leaves it as it was.
class ForkMutex {
 public:
  void lock();
  void unlock();
  bool try_lock();

 private:
  bool take(uint64_t mine);
  std::atomic<uint64_t> owner_{0};  ///< number of the process that holds it, 0 = free
};

}  // namespace opmux::base
