#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/system/process.hpp"
#include "health/breaker_key.hpp"
#include "health/breaker_state.hpp"

namespace opmux::health {

/// Mutex and atomic types of a breaker. Tests substitute types that let them interleave threads
/// between the steps of a call.
struct RealSync {
  using Mutex = base::ForkMutex;
  template <class T>
  using Atomic = std::atomic<T>;
};

/// Whether a call may run. The caller hands the same Pass back to leave().
struct Pass {
  bool admitted = true;
  /// The call holds one of the half-open permits of `cell`; leave() returns it.
  bool permit = false;
  uint8_t cell = 0;
  /// Period of the cell when the permit was taken; see BreakerCell::period.
  uint32_t period = 0;
  uint64_t took_ns = 0;  ///< duration of the call; 0 unless the call was timed
};

/// How a call ended, as far as a breaker is concerned. `neither`: the implementation declined, the
/// caller passed wrong arguments, or memory ran out.
enum class Ending : uint8_t { success, failure, neither };

enum class Force : uint8_t { open, close, isolate };

/// The transitions that one event caused. `publish`: the decisions of the operator must be
/// recomputed.
struct BreakerChange {
  struct Step {
    uint8_t cell;
    BreakerState from, to;
    uint32_t openings;
    uint64_t open_for_ns;
    uint64_t change;  ///< number of this transition; see BreakerCell::change
    Cause cause = Cause::none;
    BreakerKey key = {};  ///< class of the cell; empty for kOverflow and kWhole
  };
  bool publish = false;
  /// Publish without waiting for the publish gate, because calls with cached plans do not consult
  /// the breaker yet.
  bool at_once = false;
  uint8_t count = 0;
  std::array<Step, 20> steps{};

  void add(const Step& step) {
    publish = true;
    if (count < steps.size()) steps[count++] = step;
  }
};

/// The circuit breaker of one implementation. It has a cell for each of the first kClasses classes
/// of calls that failed, one cell shared by all further classes, and one cell for the
/// implementation as a whole. Thread-safe. A forked child finds a consistent breaker; if the fork
/// interrupted a change, the child's breaker is reset.
template <class Sync, class Rules = BreakerRules>
class BasicBreaker {
 public:
  static constexpr uint8_t kClasses = 16;
  /// Shared by the classes after the first kClasses.
  static constexpr uint8_t kOverflow = kClasses;
  static constexpr uint8_t kWhole = kOverflow + 1;  ///< the whole implementation
  static constexpr uint8_t kCells = kWhole + 1;
  static constexpr uint64_t kNever = UINT64_MAX;

  /// Transitions are numbered from `changes` + 1.
  BasicBreaker(bool is_reference, const BreakerLimits& limits, uint64_t seed, uint64_t changes = 0)
      : is_reference_(is_reference) {
    data_.limits = limits;
    data_.random = seed;
    data_.changes = changes;
  }

  /// Called before each call of an armed implementation. If the call is admitted, its caller passes
  /// the result to leave().
  Pass enter(const BreakerKey& key) {
    if (barred_.load(std::memory_order_acquire) == 0) return {};
    const Turn turn(*this);
    const uint8_t at = find(key);
    if (at == kCells) return {};
    BreakerCell& cell = data_.cells[at];
    Pass pass{true, false, at, cell.period};
    if (Rules::runs_freely(cell.state)) return pass;
    pass.admitted = cell.state == BreakerState::half_open &&
                    Rules::permit_is_free(cell.permits_out, data_.limits);
    pass.permit = pass.admitted;
    if (pass.permit) ++cell.permits_out;
    return pass;
  }

  /// Records the outcome of a call: every failure, every slow call, and every outcome of an armed
  /// implementation.
  BreakerChange leave(const BreakerKey& key, const Pass& pass, Ending ending, uint64_t now_ns) {
    const Turn turn(*this);
    BreakerChange change;
    if (pass.permit) --data_.cells[pass.cell].permits_out;
    const bool slow = ending == Ending::success && Rules::is_slow(pass.took_ns, data_.limits);
    if (ending == Ending::failure) fail(key, now_ns, change);
    if (slow) drag(key, now_ns, change);
    if (ending == Ending::success && !slow) succeed(key, pass, change);
    return change;
  }

  /// Opens the class of a call whose result was wrong. The call ended before `ended_ns`; if the
  /// class was opened after that, the result adds no information and nothing changes.
  BreakerChange trip(const BreakerKey& key, uint64_t ended_ns, uint64_t now_ns) {
    const Turn turn(*this);
    BreakerChange change;
    if (!Rules::can_open(is_reference_)) return change;
    data_.failures += Rules::weight_of_failure();
    data_.clean = 0;
    const uint8_t at = find_or_make(key);
    BreakerCell& cell = data_.cells[at];
    const bool rests = cell.state == BreakerState::open || cell.state == BreakerState::isolated;
    if (rests || ended_ns < cell.opened_ns) return change;
    arm();
    change.at_once = !data_.recording;
    open(at, Cause::mismatch, now_ns, change);
    return change;
  }

  /// Compares the duration of a call with that of the reference for the same arguments. The call
  /// ended before `ended_ns`; if the class was opened after that, nothing changes.
  BreakerChange compare(const BreakerKey& key, uint64_t took_ns, uint64_t reference_ns,
                        uint64_t ended_ns, uint64_t now_ns) {
    const Turn turn(*this);
    BreakerChange change;
    const bool slower = Rules::is_slower(took_ns, reference_ns, data_.limits);
    if (!Rules::can_open(is_reference_) || (!slower && find(key) == kCells)) return change;
    const uint8_t at = find_or_make(key);
    BreakerCell& cell = data_.cells[at];
    if (cell.state != BreakerState::closed || ended_ns < cell.opened_ns) return change;
    cell.slower.add(slower, data_.limits.window);
    if (!Rules::opens_slow(cell.slower.failures(), cell.slower.size(), data_.limits)) return change;
    arm();
    change.at_once = !data_.recording;
    open(at, Cause::slow_rate, now_ns, change);
    return change;
  }

  /// Moves open cells whose open time has elapsed to half open.
  BreakerChange advance(uint64_t now_ns) {
    const Turn turn(*this);
    BreakerChange change;
    for (uint8_t at = 0; at < kCells; ++at) {
      BreakerCell& cell = data_.cells[at];
      if (cell.state == BreakerState::open && now_ns >= cell.open_until_ns)
        move(at, BreakerState::half_open, Cause::time, change);
    }
    return change;
  }
  /// The earliest time at which advance() has work; kNever if no cell is open.
  uint64_t next_due_ns() {
    const Turn turn(*this);
    uint64_t due = kNever;
    for (const BreakerCell& cell : data_.cells) {
      if (cell.state == BreakerState::open) due = std::min(due, cell.open_until_ns);
    }
    return due;
  }

  /// Manual override for the whole implementation. Has no effect on a reference, which never opens.
  BreakerChange force(Force what, uint64_t now_ns) {
    const Turn turn(*this);
    BreakerChange change;
    if (!Rules::can_open(is_reference_)) return change;
    change.publish = true;
    if (what == Force::close) {
      for (uint8_t at = 0; at < kCells; ++at) move(at, BreakerState::closed, Cause::hand, change);
      disarm();
      return change;
    }
    arm();
    forget_classes(Cause::hand, change);
    if (what == Force::open) open(kWhole, Cause::hand, now_ns, change);
    if (what == Force::isolate) move(kWhole, BreakerState::isolated, Cause::hand, change);
    return change;
  }

  BreakerChange set_limits(const BreakerLimits& limits) {
    const Turn turn(*this);
    data_.limits = limits;
    BreakerChange change;
    const bool before = times_calls();
    slow_call_ns_.store(Rules::can_open(is_reference_) ? limits.slow_call_ns : 0,
                        std::memory_order_relaxed);
    change.publish = times_calls() != before;
    return change;
  }
  /// Whether callers must measure the duration of calls. They report a call that was slower than
  /// slow_call_ns() even if the breaker is not armed; this arms it.
  bool times_calls() const { return slow_call_ns() != 0; }
  uint64_t slow_call_ns() const { return slow_call_ns_.load(std::memory_order_relaxed); }

  /// Whether durations are to be compared with those of the reference: compare().
  bool compares_times() {
    const Turn turn(*this);
    return Rules::can_open(is_reference_) && data_.limits.slow_factor > 0;
  }

  /// Called before a publication: decisions made from now on see the cells that are open now.
  /// Returns the number of the arming that they see, which is the argument of published(); 0 while
  /// the breaker is not armed.
  uint32_t announce() {
    const Turn turn(*this);
    for (BreakerCell& cell : data_.cells) {
      cell.published_open =
          cell.state == BreakerState::open || cell.state == BreakerState::isolated;
    }
    data_.announced_armed = data_.armed;
    return data_.armed ? data_.armings : 0;
  }
  /// Called after a publication that announced `arming`: from now on every outcome is recorded. A
  /// publication that was announced before the breaker was armed, or for an earlier arming, says
  /// nothing about the calls that run now. Failures before it were recorded without the successes
  /// between them, so each cell keeps at most one of them.
  void published(uint32_t arming) {
    const Turn turn(*this);
    if (data_.recording || !data_.armed || arming != data_.armings) return;
    data_.recording = true;
    for (BreakerCell& cell : data_.cells) cell.consecutive = std::min(cell.consecutive, 1u);
  }

  /// Whether the published plans make calls use enter() and leave().
  bool announced_armed() {
    const Turn turn(*this);
    return data_.announced_armed;
  }
  /// A copy of the cell that currently governs this class; nullopt if the class has none.
  std::optional<BreakerCell> cell_of(const BreakerKey& key) {
    const Turn turn(*this);
    const uint8_t at = find(key);
    if (at == kCells) return std::nullopt;
    return data_.cells[at];
  }
  /// Whether the published decisions refuse this class.
  bool published_open(const BreakerKey& key) {
    const Turn turn(*this);
    if (data_.cells[kWhole].published_open) return true;
    const uint8_t at = find_class(key);
    return at != kCells && data_.cells[at].published_open;
  }
  uint64_t failures() {
    const Turn turn(*this);
    return data_.failures;
  }

  /// Calls visit(cell number, key, cell) for each class that has a cell, and for the overflow and
  /// whole cells unless they are closed.
  template <class Visit>
  void for_each_cell(Visit&& visit) {
    const Turn turn(*this);
    for (uint8_t at = 0; at < kCells; ++at) {
      const BreakerCell& cell = data_.cells[at];
      const bool known = at < kClasses ? at < data_.used : cell.state != BreakerState::closed;
      if (known) visit(at, at < kClasses ? data_.keys[at] : BreakerKey{}, cell);
    }
  }

  struct Data {
    std::array<BreakerKey, kClasses> keys{};
    std::array<BreakerCell, kCells> cells{};
    uint8_t used = 0;  ///< classes that have a cell
    /// `armed`: calls must consult the breaker. `announced_armed`: `armed` as of the last
    /// announce().
    bool armed = false, announced_armed = false;
    bool recording = false;  ///< every outcome is recorded; set by published()
    uint32_t armings = 0;    ///< how often the breaker was armed
    uint32_t clean = 0;      ///< good outcomes since the last failure or slow call
    uint64_t failures = 0;   ///< in total, never reset
    uint64_t random = 0;
    uint64_t changes = 0;  ///< number of the last transition
    BreakerLimits limits;
  };
  /// For tests that compare complete states.
  const Data& data() const { return data_; }

 private:
  /// Holds the mutex. Resets data_ if a fork interrupted the previous holder, and updates barred_
  /// on release.
  struct Turn {
    explicit Turn(BasicBreaker& breaker) : owner(breaker) {
      owner.mutex_.lock();
      if (owner.changing_) {
        const BreakerLimits limits = owner.data_.limits;
        const uint64_t changes = owner.data_.changes;
        owner.data_ = {};
        owner.data_.limits = limits;
        owner.data_.changes = changes + 1;
      }
      owner.changing_ = true;
    }
    ~Turn() {
      owner.changing_ = false;
      uint32_t barred = 0;
      for (const BreakerCell& cell : owner.data_.cells)
        barred += cell.state == BreakerState::closed ? 0 : 1;
      owner.barred_.store(barred, std::memory_order_release);
      owner.mutex_.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    BasicBreaker& owner;
  };

  /// The cell of a class; kCells if the class has none yet.
  uint8_t find_class(const BreakerKey& key) const {
    for (uint8_t at = 0; at < data_.used; ++at) {
      if (data_.keys[at] == key) return at;
    }
    return data_.used == kClasses ? kOverflow : kCells;
  }
  /// The cell that decides whether calls of a class may run: the whole cell unless it is closed.
  uint8_t find(const BreakerKey& key) const {
    return data_.cells[kWhole].state == BreakerState::closed ? find_class(key) : kWhole;
  }
  uint8_t find_or_make(const BreakerKey& key) {
    uint8_t at = find(key);
    if (at != kCells) return at;
    at = data_.used++;
    data_.keys[at] = key;
    return at;
  }

  void fail(const BreakerKey& key, uint64_t now_ns, BreakerChange& change) {
    if (!Rules::can_open(is_reference_)) return;
    data_.failures += Rules::weight_of_failure();
    data_.clean = 0;
    change.publish |= arm();
    const uint8_t at = find_or_make(key);
    BreakerCell& cell = data_.cells[at];
    if (cell.state == BreakerState::half_open && Rules::opens_half_open(true))
      return open(at, Cause::probe, now_ns, change);
    if (cell.state != BreakerState::closed) return;
    cell.consecutive += Rules::weight_of_failure();
    if (data_.recording || cell.window.size() == 0) cell.window.add(true, data_.limits.window);
    if (!data_.recording) return;
    if (Rules::opens_closed(cell.consecutive, cell.window.failures(), cell.window.size(),
                            data_.limits)) {
      const bool in_a_row = cell.consecutive >= data_.limits.consecutive_failures;
      open(at, in_a_row ? Cause::failures : Cause::failure_rate, now_ns, change);
    }
  }

  /// Records a call that succeeded but took longer than `slow_call_ns`.
  void drag(const BreakerKey& key, uint64_t now_ns, BreakerChange& change) {
    if (!Rules::can_open(is_reference_)) return;
    data_.clean = 0;
    change.publish |= arm();
    const uint8_t at = find_or_make(key);
    BreakerCell& cell = data_.cells[at];
    if (cell.state == BreakerState::half_open && Rules::opens_half_open(true))
      return open(at, Cause::probe, now_ns, change);
    if (cell.state != BreakerState::closed) return;
    cell.consecutive = 0;
    if (data_.recording || cell.slow.size() == 0) {
      cell.window.add(false, data_.limits.window);
      cell.slow.add(true, data_.limits.window);
    }
    if (!data_.recording) return;
    if (Rules::opens_slow(cell.slow.failures(), cell.slow.size(), data_.limits))
      open(at, Cause::slow_rate, now_ns, change);
  }

  void succeed(const BreakerKey& key, const Pass& pass, BreakerChange& change) {
    if (!data_.armed) return;
    if (pass.permit) {
      BreakerCell& cell = data_.cells[pass.cell];
      if (cell.state != BreakerState::half_open || cell.period != pass.period) return;
      if (Rules::closes(++cell.successes, data_.limits))
        move(pass.cell, BreakerState::closed, Cause::probe, change);
      return;
    }
    const uint8_t at = find(key);
    if (at != kCells) {
      BreakerCell& cell = data_.cells[at];
      if (cell.state != BreakerState::closed) return;
      cell.consecutive = 0;
      cell.window.add(false, data_.limits.window);
      if (data_.limits.slow_call_ns != 0) cell.slow.add(false, data_.limits.window);
    }
    if (!data_.recording || ++data_.clean < data_.limits.clean_outcomes || any_barred()) return;
    disarm();
    change.publish = !data_.armed;
  }

  BreakerKey key_of(uint8_t at) const { return at < kClasses ? data_.keys[at] : BreakerKey{}; }

  bool any_barred() const {
    for (const BreakerCell& cell : data_.cells) {
      if (cell.state != BreakerState::closed) return true;
    }
    return false;
  }

  void open(uint8_t at, Cause cause, uint64_t now_ns, BreakerChange& change) {
    open_cell(at, cause, now_ns, change);
    if (at == kWhole) return;
    uint32_t open_classes = 0;
    for (uint8_t other = 0; other < kWhole; ++other)
      open_classes += data_.cells[other].state == BreakerState::open ? 1 : 0;
    if (open_classes < data_.limits.open_classes) return;
    forget_classes(Cause::classes, change);
    open_cell(kWhole, Cause::classes, now_ns, change);
  }
  void open_cell(uint8_t at, Cause cause, uint64_t now_ns, BreakerChange& change) {
    BreakerCell& cell = data_.cells[at];
    const BreakerState before = cell.state;
    cell.enter(BreakerState::open);
    ++cell.openings;
    const uint64_t lasts = Rules::open_for_ns(cell.openings, next_random(), data_.limits);
    cell.open_until_ns = now_ns + lasts;
    cell.opened_ns = now_ns;
    cell.cause = cause;
    cell.change = ++data_.changes;
    change.add(
        {at, before, BreakerState::open, cell.openings, lasts, cell.change, cause, key_of(at)});
  }
  void move(uint8_t at, BreakerState next, Cause cause, BreakerChange& change) {
    BreakerCell& cell = data_.cells[at];
    const BreakerState before = cell.state;
    if (before == next) return;
    cell.enter(next);
    cell.cause = cause;
    cell.change = ++data_.changes;
    change.add({at, before, next, cell.openings, 0, cell.change, cause, key_of(at)});
  }
  /// Closes and forgets all classes, because the whole cell is about to open.
  void forget_classes(Cause cause, BreakerChange& change) {
    for (uint8_t at = 0; at < kWhole; ++at) {
      move(at, BreakerState::closed, cause, change);
      data_.cells[at].forget();
    }
    data_.used = 0;
  }
  /// Returns false if the breaker was armed already.
  bool arm() {
    if (data_.armed) return false;
    data_.armed = true;
    ++data_.armings;
    return true;
  }
  /// Forgets all cells.
  void disarm() {
    for (BreakerCell& cell : data_.cells) cell.forget();
    data_.used = 0;
    data_.clean = 0;
    data_.armed = data_.recording = false;
  }

  uint64_t next_random() {
    uint64_t word = data_.random += 0x9E3779B97F4A7C15;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
    word = (word ^ word >> 27) * 0x94D049BB133111EB;
    return word ^ word >> 31;
  }

  const bool is_reference_;
  typename Sync::Mutex mutex_;
  /// True while a thread changes data_; a forked child that finds it true resets data_.
  bool changing_ = false;
  typename Sync::template Atomic<uint32_t> barred_{0};        ///< cells that are not closed
  typename Sync::template Atomic<uint64_t> slow_call_ns_{0};  ///< 0: calls are not timed
  Data data_;
};

using Breaker = BasicBreaker<RealSync>;

}  // namespace opmux::health
