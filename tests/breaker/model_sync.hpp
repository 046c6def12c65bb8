#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fibers.hpp"

namespace opmux::test {

/// Maximum number of threads in an explored model.
inline constexpr size_t kMaxExplored = 3;

/// Hash of the values that each thread has read since its event began. It determines the thread's
/// position and its local variables.
struct Progress {
  std::array<uint64_t, kMaxExplored> read{};
  std::array<uint32_t, kMaxExplored> steps{};
  uint64_t (*guarded)() = nullptr;  ///< hash of all state that locks guard

  void note(uint64_t value) {
    const auto fiber = Fibers::current->running();
    read[fiber] = (read[fiber] ^ value) * 0x9E3779B97F4A7C15 + ++steps[fiber];
  }
  /// Resets the hash to `value`, because earlier reads no longer matter.
  void keep(uint64_t value) {
    const auto fiber = Fibers::current->running();
    read[fiber] = 0;
    note(value);
  }
};
inline Progress progress;

/// Locks and atomics that pause before each step.
struct ModelSync {
  class Mutex {
   public:
    void lock() {
      Fibers::current->pause(&held_);
      held_ = true;
      // From here to unlock() the thread reads state that no other thread can change.
      progress.note(progress.guarded());
    }
    /// Unlocking is not a separate step, because it makes no difference to waiting threads if they
    /// wait a little longer.
    void unlock() { held_ = false; }

   private:
    bool held_ = false;
  };

  template <class T>
  class Atomic {
   public:
    Atomic(T value) : value_(value) {}  // NOLINT(google-explicit-constructor)
    T load(std::memory_order) const {
      Fibers::current->pause();
      progress.note(value_);
      return value_;
    }
    void store(T value, std::memory_order) {
      Fibers::current->pause();
      value_ = value;
      progress.note(1);
    }

   private:
    T value_;
  };
};

}  // namespace opmux::test
