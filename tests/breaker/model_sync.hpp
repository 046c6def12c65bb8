#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fibers.hpp"

namespace opmux::test {

/// Threads of a model that is explored.
inline constexpr size_t kMaxExplored = 3;

/// What each thread of a model has read since its event began: with it, where it stands and what
/// its local variables hold.
struct Progress {
  std::array<uint64_t, kMaxExplored> read{};
  std::array<uint32_t, kMaxExplored> steps{};
  uint64_t (*guarded)() = nullptr;  ///< a number for all that locks guard

  void note(uint64_t value) {
    const auto fiber = Fibers::current->running();
    read[fiber] = (read[fiber] ^ value) * 0x9E3779B97F4A7C15 + ++steps[fiber];
  }
  /// Nothing that was read matters any more, but for this.
  void keep(uint64_t value) {
    const auto fiber = Fibers::current->running();
    read[fiber] = 0;
    note(value);
  }
};
inline Progress progress;

/// Locks and atomics that stop before each step.
struct ModelSync {
  class Mutex {
   public:
    void lock() {
      Fibers::current->pause(&held_);
      held_ = true;
      // From here to unlock() the thread reads what nobody else can change.
      progress.note(progress.guarded());
    }
    /// No step of its own: to others it makes no difference whether they wait a little longer.
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
