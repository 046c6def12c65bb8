#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "fibers.hpp"
#include "health/breaker_registry.hpp"

namespace opmux::test {

using health::BreakerChange;
using health::BreakerState;
using health::kSecondNs;

/// Locks and atomics at which the simulation may switch threads.
struct SimulatedSync {
  class Mutex {
   public:
    void lock() {
      Fibers::current->pause(&held_);
      held_ = true;
    }
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
      return value_;
    }
    void store(T value, std::memory_order) {
      Fibers::current->pause();
      value_ = value;
    }

   private:
    T value_;
  };
};

inline health::BreakerKey simulated_key(size_t name) {
  health::BreakerKey key;
  key.log2[0] = static_cast<uint8_t>(name);
  return key;
}

/// A breaker with separate counts, against which it is checked. No other thread runs between the
/// end of a change and its counting.
template <class Sync, class Rules>
class SimulatedBreaker {
 public:
  using Breaker = health::BasicBreaker<Sync, Rules>;

  SimulatedBreaker(bool reference, uint64_t seed)
      : is_reference(reference), breaker(reference, {}, seed) {}

  health::Pass enter(const health::BreakerKey& key) {
    const health::Pass pass = breaker.enter(key);
    if (!pass.admitted) return pass;
    Count& own = counts_[pass.permit ? pass.cell : cell_of(key)];
    if (!pass.permit) {
      expect(own.state == BreakerState::closed, "1: something that is not closed ran freely");
      return pass;
    }
    expect(own.state == BreakerState::half_open, "1: a permit of something that is not half open");
    expect(++own.permits <= limits_.permits, "2: too many permits");
    return pass;
  }
  /// A breaker that was forced by hand may still admit calls until the change is published.
  void begin_unwatched(const health::BreakerKey& key, bool publishing) {
    const Count& own = counts_[cell_of(key)];
    const bool closed = own.state == BreakerState::closed;
    // A wrong result opens a class while calls run unwatched. It publishes before its listeners are
    // notified.
    expect(closed || publishing || by_hand_ || own.at_once, "1: something open ran unwatched");
    expect(!own.told || by_hand_, "8: something ran unwatched after its listeners were notified");
  }

  BreakerChange leave(const health::BreakerKey& key, const health::Pass& pass,
                      health::Ending ending, uint64_t now) {
    const BreakerChange change = breaker.leave(key, pass, ending, now);
    const bool failed = ending == health::Ending::failure;
    const bool late = !failed && limits_.slow_call_ns != 0 && pass.took_ns > limits_.slow_call_ns;
    if (failed && !is_reference) ++failures_;
    expect(breaker.data().failures == failures_, "4: a failure that does not count once");
    Count& own = counts_[pass.permit ? pass.cell : cell_of(key)];
    if (pass.permit) --own.permits;
    const bool in_time = own.state == BreakerState::half_open && own.period == pass.period;
    if (pass.permit && in_time && !failed && !late) ++own.successes;
    const bool reopens = failed && counts_[cell_of(key)].state == BreakerState::half_open;
    take(change, now);
    expect(!reopens || counts_[cell_of(key)].state == BreakerState::open,
           "3: a failure that leaves it half open");
    return change;
  }
  /// The result of a call that ended at `ended` was wrong.
  BreakerChange trip(const health::BreakerKey& key, uint64_t ended, uint64_t now) {
    const BreakerChange change = breaker.trip(key, ended, now);
    if (!is_reference) ++failures_;
    take(change, now);
    for (uint8_t i = 0; i < change.count; ++i)
      counts_[change.steps[i].cell].at_once = change.at_once;
    return change;
  }
  /// The change was followed: listeners learn of its openings now.
  void tell(const BreakerChange& change) {
    for (uint8_t i = 0; i < change.count; ++i) {
      const BreakerChange::Step& step = change.steps[i];
      if (step.to != BreakerState::open || step.cause == health::Cause::hand) continue;
      // Unless another change came between.
      Count& own = counts_[step.cell];
      own.told = own.state == BreakerState::open && own.openings == step.openings;
    }
  }
  BreakerChange advance(uint64_t now) {
    const BreakerChange change = breaker.advance(now);
    for (uint8_t i = 0; i < change.count; ++i)
      expect(now >= counts_[change.steps[i].cell].until, "6: half open too early");
    take(change, now);
    for (const Count& count : counts_)
      expect(count.state != BreakerState::open || now < count.until, "6: open for too long");
    return change;
  }
  BreakerChange force(health::Force what, uint64_t now) {
    const BreakerChange change = breaker.force(what, now);
    by_hand_ = true;
    forced = what == health::Force::isolate && !is_reference;
    take(change, now);
    return change;
  }
  BreakerChange set_limits(const health::BreakerLimits& limits) {
    const BreakerChange change = breaker.set_limits(limits);
    limits_ = limits;
    return change;
  }
  /// A publication that was announced before the breaker was forced does not count.
  void published() { by_hand_ &= !breaker.data().announced_armed; }

  /// Reports a breaker that is still not closed after a long time without failures.
  std::string what_is_left() {
    for (const health::BreakerCell& cell : breaker.data().cells) {
      if (cell.state != BreakerState::closed) return "something never closed again";
      if (cell.permits_out != 0) return "2: a permit that never came back";
      if (cell.published_open) return "something that closed is published as open";
    }
    return breaker.data().armed ? "something never was trusted again" : "";
  }

  const bool is_reference;
  Breaker breaker;
  bool watched = false;                       ///< plans take the recording path
  uint64_t failing = 0, slow = 0, lying = 0;  ///< percent of its calls
  bool forced = false;                        ///< isolated by hand
  std::string wrong;

 private:
  struct Count {
    BreakerState state = BreakerState::closed;
    uint32_t period = 0, permits = 0, successes = 0;
    uint64_t until = 0;
    uint32_t openings = 0;
    bool told = false;     ///< open, and listeners were notified
    bool at_once = false;  ///< opened by a wrong result before calls were watched
  };

  void expect(bool holds, const char* what) {
    if (!holds && wrong.empty()) wrong = what;
  }
  /// The cell of a class; the last cell, which is always closed, if the class has none.
  uint8_t cell_of(const health::BreakerKey& key) const {
    const auto& data = breaker.data();
    if (counts_[Breaker::kWhole].state != BreakerState::closed) return Breaker::kWhole;
    const auto end = data.keys.begin() + data.used;
    const auto found = std::find(data.keys.begin(), end, key);
    if (found != end) return static_cast<uint8_t>(found - data.keys.begin());
    return data.used == Breaker::kClasses ? Breaker::kOverflow : Breaker::kCells;
  }

  void take(const BreakerChange& change, uint64_t now) {
    for (uint8_t i = 0; i < change.count; ++i) {
      const BreakerChange::Step& step = change.steps[i];
      Count& own = counts_[step.cell];
      expect(!is_reference, "5: the reference changed its state");
      expect(own.state == step.from, "a step from another state");
      if (own.state == BreakerState::half_open && step.to == BreakerState::closed &&
          step.cause == health::Cause::probe)
        expect(own.successes >= limits_.successes, "3: closed after too few successes");
      own.state = step.to;
      own.successes = 0;
      own.told = own.at_once = false;
      own.openings = step.openings;
      if (step.to == BreakerState::open) own.until = now + length(step);
    }
    for (size_t at = 0; at < Breaker::kCells; ++at)
      counts_[at].period = breaker.data().cells[at].period;
  }
  uint64_t length(const BreakerChange::Step& step) {
    const uint64_t most = std::max(limits_.open_at_most_ns, limits_.open_for_ns);
    const uint64_t whole = std::min(limits_.open_for_ns * step.openings, most);
    expect(step.open_for_ns >= whole / 10 * 9 && step.open_for_ns <= whole / 10 * 11 + 1,
           "6: the length of an opening");
    return step.open_for_ns;
  }

  std::array<Count, Breaker::kCells + 1> counts_{};
  health::BreakerLimits limits_;
  uint64_t failures_ = 0;
  bool by_hand_ = false;
};

}  // namespace opmux::test
