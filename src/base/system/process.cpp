#include "base/system/process.hpp"

#include <pthread.h>

#include <array>

namespace opmux::base {
namespace {

// A fixed table of atomics, so that a forked child can walk it without a lock.
struct Handler {
  std::atomic<void (*)(void*)> function{nullptr};
  std::atomic<void*> context{nullptr};
};
constexpr size_t kMaxHandlers = 256;
std::array<Handler, kMaxHandlers> handlers;
std::atomic<uint64_t> current_number{1};

void after_fork() {
  current_number.fetch_add(1, std::memory_order_relaxed);
  for (Handler& handler : handlers) {
    if (auto* function = handler.function.load(std::memory_order_acquire)) {
      function(handler.context.load(std::memory_order_relaxed));
    }
  }
}

// Runs when the library is loaded rather than on first use, so that no fork can interrupt it.
[[maybe_unused]] const int kInstalled = pthread_atfork(nullptr, nullptr, after_fork);

}  // namespace

uint64_t process_number() { return current_number.load(std::memory_order_relaxed); }

void at_fork_in_child(void (*function)(void*), void* context) {
  for (Handler& handler : handlers) {
    void* free = nullptr;
    if (handler.context.compare_exchange_strong(free, context, std::memory_order_acq_rel)) {
      handler.function.store(function, std::memory_order_release);
      return;
    }
  }
}

void forget_fork_handler(void* context) {
  for (Handler& handler : handlers) {
    if (handler.context.load(std::memory_order_acquire) != context) continue;
    handler.function.store(nullptr, std::memory_order_release);
    handler.context.store(nullptr, std::memory_order_release);
  }
}

bool ForkMutex::take(uint64_t mine) {
  uint64_t owner = owner_.load(std::memory_order_relaxed);
  // A different process number means that a thread of the parent held the lock at the fork. That
  // thread does not exist here, so the lock can be taken.
  if (owner == mine) return false;
  return owner_.compare_exchange_strong(owner, mine, std::memory_order_acquire);
}

bool ForkMutex::try_lock() { return take(process_number()); }

void ForkMutex::lock() {
  const uint64_t mine = process_number();
  while (!take(mine)) owner_.wait(mine, std::memory_order_relaxed);
}

void ForkMutex::unlock() {
  owner_.store(0, std::memory_order_release);
  owner_.notify_one();
}

ThreadStateGuard::ThreadStateGuard() {
  std::fegetenv(&floating_point_);
  pthread_sigmask(SIG_SETMASK, nullptr, &signals_);
}

ThreadStateGuard::~ThreadStateGuard() {
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  std::fesetenv(&floating_point_);
}

thread_local constinit const void* thread_marks __attribute__((tls_model("initial-exec"))) =
    nullptr;

}  // namespace opmux::base
