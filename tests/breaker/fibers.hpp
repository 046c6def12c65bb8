#pragma once

#include <ucontext.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace opmux::test {

/// Threads of a model: each runs until it is about to touch something shared, and goes on when it
/// is told to.
class Fibers {
 public:
  static constexpr int kMax = 3;

  /// The one whose steps are being taken; what the model's locks and atomics talk to.
  static inline Fibers* current = nullptr;

  explicit Fibers(int count) : count_(count) {
    for (int i = 0; i < count_; ++i) fibers_[i].stack = std::make_unique<std::byte[]>(kStack);
  }

  /// All threads from the beginning; none has taken a step.
  void restart(const std::function<void(int)>& body) {
    body_ = &body;
    for (int i = 0; i < count_; ++i) {
      fibers_[i].started = fibers_[i].done = false;
      fibers_[i].waits_for = nullptr;
    }
  }

  int count() const { return count_; }
  bool started(int fiber) const { return fibers_[fiber].started; }
  bool done(int fiber) const { return fibers_[fiber].done; }
  bool blocked(int fiber) const {
    return fibers_[fiber].waits_for != nullptr && *fibers_[fiber].waits_for;
  }
  int running() const { return running_; }

  /// Lets a thread take one step.
  void step(int fiber) {
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

  /// Called by a thread of the model before each step. `waits_for`: cannot go on while it is true.
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

  int count_;
  int running_ = 0;
  const std::function<void(int)>* body_ = nullptr;
  jmp_buf home_{};
  std::array<Fiber, kMax> fibers_;
};

}  // namespace opmux::test
