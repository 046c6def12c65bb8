#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace opmux::test {

/// Threads of a model: each one runs until just before it accesses shared state, and continues when
/// step() is called.
class Fibers {
 public:
  /// The instance that is currently running; used by the model's locks and atomics.
  static inline Fibers* current = nullptr;

  explicit Fibers(size_t count) : fibers_(count) {
    for (Fiber& fiber : fibers_) fiber.stack = std::make_unique<std::byte[]>(kStack);
  }

  /// Restarts all threads; none has taken a step.
  void restart(const std::function<void(size_t)>& body) {
    body_ = &body;
    for (Fiber& fiber : fibers_) {
      fiber.started = fiber.done = false;
      fiber.waits_for = nullptr;
    }
  }

  size_t count() const { return fibers_.size(); }
  bool started(size_t fiber) const { return fibers_[fiber].started; }
  bool done(size_t fiber) const { return fibers_[fiber].done; }
  bool blocked(size_t fiber) const {
    return fibers_[fiber].waits_for != nullptr && *fibers_[fiber].waits_for;
  }
  size_t running() const { return running_; }

  /// Lets a thread take one step.
  void step(size_t fiber) {
    current = this;
    running_ = fiber;
    if (_setjmp(home_) != 0) return;
    Fiber& own = fibers_[fiber];
    if (own.started) _longjmp(own.place, 1);
    own.started = true;
    getcontext(&own.context);
    own.context.uc_stack.ss_sp = own.stack.get();
    own.context.uc_stack.ss_size = kStack;
    own.context.uc_link = nullptr;
    makecontext(&own.context, &Fibers::start, 0);
    setcontext(&own.context);
  }

  /// Called by a model thread before each step. The thread cannot continue while *waits_for is
  /// true.
  void pause(const bool* waits_for = nullptr) {
    Fiber& own = fibers_[running_];
    own.waits_for = waits_for;
    if (_setjmp(own.place) == 0) _longjmp(home_, 1);
    own.waits_for = nullptr;
  }

 private:
  static constexpr size_t kStack = size_t{256} << 10;
  struct Fiber {
    std::unique_ptr<std::byte[]> stack;
    ucontext_t context{};
    jmp_buf place{};
    bool started = false, done = false;
    const bool* waits_for = nullptr;
  };

  static void start() {
    Fibers& all = *current;
    (*all.body_)(all.running_);
    all.fibers_[all.running_].done = true;
    _longjmp(all.home_, 1);
  }

  size_t running_ = 0;
  const std::function<void(size_t)>* body_ = nullptr;
  jmp_buf home_{};
  std::vector<Fiber> fibers_;
};

}  // namespace opmux::test
