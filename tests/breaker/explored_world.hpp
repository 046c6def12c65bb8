#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "health/breaker_registry.hpp"
#include "model_sync.hpp"

namespace opmux::test {

using health::BreakerChange;
using health::BreakerState;
using health::kSecondNs;

/// Events of a model thread. An end without a begin does nothing.
enum class Event : uint8_t { begin, end_ok, end_fail, tick };

/// Limits small enough to reach every state within a few events.
inline health::BreakerLimits small_limits() {
  health::BreakerLimits limits;
  limits.consecutive_failures = 2;
  limits.window = 4;
  limits.min_calls = 3;
  limits.open_at_most_ns = 45 * kSecondNs;
  limits.clean_outcomes = 3;
  return limits;
}

/// One implementation with its breaker, the publication of its operator, and its callers. Keeps
/// separate counts, against which the breaker is checked.
template <class Rules>
class ExploredWorld {
 public:
  using Breaker = health::BasicBreaker<ModelSync, Rules>;
  struct One {
    Breaker* breaker = nullptr;
    template <class Visit>
    void for_each(Visit&& visit) {
      visit(*breaker);
    }
  };

  explicit ExploredWorld(bool is_reference)
      : reference_(is_reference), breaker_(is_reference, small_limits(), 1) {
    group_.breakers().breaker = &breaker_;
  }

  void happen(size_t thread, Event event) {
    Caller& own = callers_[thread];
    switch (event) {
      case Event::begin: begin(own); break;
      case Event::end_ok: end(own, health::Ending::success); break;
      case Event::end_fail: end(own, health::Ending::failure); break;
      case Event::tick: tick(); break;
    }
  }

  /// Calls use(from, to) for the parts of this object that can change. Only one class is called, so
  /// the other cells are skipped.
  template <class Use>
  void changing_parts(Use&& use) const {
    use(bytes(this), bytes(&breaker_.data()));
    use(bytes(&breaker_.data().cells[0]), bytes(&breaker_.data().cells[1]));
    use(bytes(&breaker_.data().cells[Breaker::kWhole]), bytes(this + 1));
  }
  /// The changing parts that are guarded by locks.
  template <class Use>
  void guarded_parts(Use&& use) const {
    use(bytes(&breaker_.data().cells[0]), bytes(&breaker_.data().cells[1]));
    use(bytes(&breaker_.data().cells[Breaker::kWhole]), bytes(&breaker_ + 1));
    use(bytes(&group_), bytes(&group_ + 1));
  }

  /// The number of the violated invariant; 0 if all hold.
  int broken() const { return broken_; }

 private:
  struct Call {
    health::Pass pass;
    bool told = false;  ///< took the recording path
  };
  struct Caller {
    std::array<Call, 4> passes{};
    size_t held = 0;
  };

  static const std::byte* bytes(const void* object) {
    return static_cast<const std::byte*>(object);
  }
  uint64_t now() const {
    progress.note(now_);
    return now_;
  }

  void expect(int invariant, bool holds) {
    if (!holds && broken_ == 0) broken_ = invariant;
  }
  const health::BreakerCell& cell() const {
    const auto& cells = breaker_.data().cells;
    const auto& whole = cells[Breaker::kWhole];
    return whole.state == BreakerState::closed ? cells[0] : whole;
  }
  bool is_open() const { return cell().state == BreakerState::open; }

  void begin(Caller& own) {
    if (own.held == own.passes.size()) return;
    Call call;
    call.told = watched_.load(std::memory_order_acquire);
    if (!call.told) {
      // The hot path does not consult the breaker. Therefore the breaker must not be open, except
      // while the thread that opens it still waits for the publication lock.
      expect(1, !is_open() || bumping_);
    } else {
      const uint32_t before = cell().permits_out;
      call.pass = breaker_.enter(key_);
      if (!call.pass.admitted) return;
      permits_ += call.pass.permit ? 1 : 0;
      expect(1,
             !is_open() || (!call.pass.permit && before == cell().permits_out && mid_change_ > 0));
      expect(2, permits_ <= 3);
    }
    own.passes[own.held++] = call;
  }

  void end(Caller& own, health::Ending ending) {
    if (own.held == 0) return;  // The call was not admitted.
    const Call call = own.passes[--own.held];
    own.passes[own.held] = {};
    const bool failed = ending == health::Ending::failure;
    // The hot path does not report successes.
    if (!call.told && !failed) return;
    failures_begun_ += failed ? 1 : 0;
    if (call.pass.permit && !failed) ++successes_begun_;
    ++mid_change_;
    const BreakerChange change = breaker_.leave(key_, call.pass, ending, now());
    --mid_change_;
    permits_ -= call.pass.permit ? 1 : 0;
    failures_ended_ += failed ? 1 : 0;
    if (failed) expect(3, cell().state != BreakerState::half_open);
    const uint64_t counted = breaker_.data().failures;
    expect(4, reference_ || (counted >= failures_ended_ && counted <= failures_begun_));
    follow(change);
  }

  void tick() {
    const uint64_t due = std::min(breaker_.next_due_ns(), group_.next_due_ns());
    now_ = due == UINT64_MAX ? now_ + health::kPublicationGapNs : std::max(now_, due);
    progress.keep(0);
    ++mid_change_;
    const BreakerChange change = breaker_.advance(now());
    --mid_change_;
    follow(change);
    group_.flush(now(), [this] { return publish(); });
  }

  void follow(const BreakerChange& change) {
    uint64_t kept = change.publish ? 1 : 0;
    for (uint8_t i = 0; i < change.count; ++i)
      kept = kept * 31 + change.steps[i].open_for_ns + static_cast<uint64_t>(change.steps[i].to);
    progress.keep(kept);
    for (uint8_t i = 0; i < change.count; ++i) {
      const BreakerChange::Step& step = change.steps[i];
      expect(5, !reference_);
      if (step.to == BreakerState::half_open) successes_begun_ = 0;
      if (step.from == BreakerState::half_open && step.to == BreakerState::closed)
        expect(3, successes_begun_ >= 2);
      if (step.to != BreakerState::open) continue;
      const uint64_t most = std::min<uint64_t>(30 * step.openings, 45);
      expect(6, step.open_for_ns >= most * 27 / 30 * kSecondNs &&
                    step.open_for_ns <= most * 33 * kSecondNs / 30);
    }
    group_.follow(change, now(), [this] { return publish(); });
  }

  uint64_t publish() {
    expect(7, bumps_ == 0 || now_ >= bumped_ + health::kPublicationGapNs);
    ++bumps_;
    bumped_ = now_;
    bumping_ = true;
    watched_.store(breaker_.data().announced_armed, std::memory_order_release);
    bumping_ = false;
    return now();
  }

  const bool reference_;
  Breaker breaker_;
  health::BasicBreakerGroup<ModelSync, Rules, One> group_;
  ModelSync::Atomic<bool> watched_{false};  ///< plans take the recording path
  health::BreakerKey key_;
  uint64_t now_ = kSecondNs;

  std::array<Caller, kMaxExplored> callers_;
  uint32_t permits_ = 0, successes_begun_ = 0, mid_change_ = 0;
  uint64_t failures_begun_ = 0, failures_ended_ = 0, bumps_ = 0, bumped_ = 0;
  bool bumping_ = false;
  int broken_ = 0;
};

}  // namespace opmux::test
