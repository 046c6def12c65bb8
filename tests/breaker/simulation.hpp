#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "fibers.hpp"
#include "simulated_breaker.hpp"

namespace opmux::test {

/// Simulates calling threads, a thread that advances time, and a thread that reloads policies and
/// forces breakers, over the breakers of several operators. A seed determines which thread runs
/// after each access to a lock or atomic, how calls end and how time passes, so every run is
/// reproducible.
template <class Sync, class Rules>
class Simulation {
 public:
  static constexpr size_t kCallers = 14, kOps = 4, kImplementations = 3, kClasses = 20;

  Simulation(uint64_t seed, uint64_t calls) : random_(seed), calls_left_(calls) {
    for (size_t at = 0; at < kOps; ++at) {
      Op& op = ops_.emplace_back();
      for (size_t i = 0; i < kImplementations; ++i) {
        const bool last = i + 1 == kImplementations;
        op.members.push_back(std::make_unique<Member>(last, seed * 64 + at * 8 + i));
      }
      op.group.breakers().members = &op.members;
    }
  }

  /// Returns the violated property; empty if all hold.
  std::string run() {
    Fibers fibers(kCallers + 2);
    const std::function<void(size_t)> body = [this](size_t thread) { live(thread); };
    fibers.restart(body);
    while (wrong_.empty()) {
      runnable_.clear();
      bool over = true;
      for (size_t thread = 0; thread < fibers.count(); ++thread) {
        over &= fibers.done(thread);
        if (!fibers.done(thread) && !fibers.blocked(thread)) runnable_.push_back(thread);
      }
      if (over) break;
      if (runnable_.empty()) return "all threads wait for each other";
      const size_t next = runnable_[random_() % runnable_.size()];
      trace_ = (trace_ ^ next) * 0x9E3779B97F4A7C15;
      ++steps_;
      fibers.step(next);
    }
    return wrong_;
  }

  uint64_t steps() const { return steps_; }
  uint64_t openings() const { return openings_; }
  uint64_t reloads() const { return reloads_; }
  uint64_t publications() const { return publications_; }
  /// Hash of the schedule and its events.
  uint64_t trace() const { return trace_; }

 private:
  using Member = SimulatedBreaker<Sync, Rules>;
  struct Members {
    std::vector<std::unique_ptr<Member>>* members = nullptr;
    template <class Visit>
    void for_each(Visit&& visit) {
      for (auto& member : *members) visit(member->breaker);
    }
  };
  struct Op {
    std::vector<std::unique_ptr<Member>> members;
    health::BasicBreakerGroup<Sync, Rules, Members> group;
    uint64_t published = 0;
    int publishing = 0;  ///< publications that have not ended
  };

  void live(size_t thread) {
    if (thread < kCallers) return serve();
    if (thread == kCallers) return let_time_pass();
    administer();
  }

  void serve() {
    while (calls_left_ > 0) {
      --calls_left_;
      if (random_() % 400 == 0) change_mood();
      call(ops_[random_() % kOps], random_() % (random_() % 8 == 0 ? kClasses : 3));
    }
    if (++callers_done_ != kCallers) return;
    // The last phase: nothing fails any more, and every breaker must close.
    for (Op& op : ops_) {
      for (auto& member : op.members) {
        member->failing = member->slow = member->lying = 0;
        if (member->forced) follow(op, *member, member->force(health::Force::close, now_));
      }
    }
    for (int i = 0; i < 300 && wrong_.empty(); ++i) {
      now_ += 4 * kSecondNs;
      advance();
      for (Op& op : ops_) {
        // Start each round of calls at a different implementation, because an implementation that
        // is not called is not probed.
        for (size_t first = 0; first + 1 < kImplementations; ++first) {
          for (size_t name = 0; name < kClasses; ++name) call(op, name, first);
        }
      }
    }
    over_ = true;
    check_recovered();
  }

  /// Models a call of the engine: consults armed breakers, runs, falls back.
  void call(Op& op, size_t name, size_t first = 0) {
    for (size_t i = first; i < kImplementations; ++i) {
      Member& member = *op.members[i];
      const health::BreakerKey key = simulated_key(name);
      health::Pass pass;
      Fibers::current->pause();
      const bool watched = member.watched;
      if (watched) {
        pass = member.enter(key);
        if (!pass.admitted) continue;
      } else {
        member.begin_unwatched(key, op.publishing > 0);
      }
      run_for(random_() % 16 == 0 ? random_() % 2'000 : random_() % 4);
      const bool failed = !member.is_reference && random_() % 100 < member.failing;
      const bool timed = watched || member.breaker.times_calls();
      if (timed && random_() % 100 < member.slow) pass.took_ns = kSecondNs;
      if (watched || failed || pass.took_ns != 0) {
        const auto ending = failed ? health::Ending::failure : health::Ending::success;
        follow(op, member, member.leave(key, pass, ending, now_));
      }
      if (!failed && !member.is_reference && random_() % 100 < member.lying) {
        const uint64_t ended = now_;
        run_for(random_() % 8);
        follow(op, member, member.trip(key, ended, now_));
      }
      note(member.wrong);
      if (!failed) return;
    }
    note("a call that nobody took");
  }

  /// Some calls take so long that everything changes meanwhile.
  void run_for(uint64_t steps) {
    for (; steps > 0 && callers_done_ < kCallers; --steps) Fibers::current->pause();
  }

  void let_time_pass() {
    while (!over_ && callers_done_ < kCallers) {
      now_ += random_() % (random_() % 4 == 0 ? 20 * kSecondNs : health::kPublicationGapNs);
      advance();
      run_for(40);
    }
  }
  void advance() {
    for (Op& op : ops_) {
      for (auto& member : op.members) {
        if (member->breaker.next_due_ns() <= now_) follow(op, *member, member->advance(now_));
        note(member->wrong);
      }
      op.group.flush(now_, [&] { return publish(op); });
    }
  }

  /// Reloads policies with other limits and forces breakers by hand.
  void administer() {
    while (callers_done_ < kCallers) {
      run_for(200);
      if (callers_done_ == kCallers) return;
      const health::BreakerLimits limits = draw_limits();
      if (random_() % 3 == 0) {
        Op& one = ops_[random_() % kOps];
        Member& member = *one.members[random_() % kImplementations];
        follow(one, member, member.force(static_cast<health::Force>(random_() % 3), now_));
        continue;
      }
      ++reloads_;
      for (Op& op : ops_) {
        bool timing = false;
        for (auto& member : op.members) timing |= member->set_limits(limits).publish;
        if (timing) op.group.publish_limits([&] { return publish(op, true); });
      }
    }
  }
  health::BreakerLimits draw_limits() {
    health::BreakerLimits limits;
    limits.consecutive_failures = static_cast<uint32_t>(2 + random_() % 5);
    limits.window = static_cast<uint32_t>(10 + random_() % 100);
    limits.open_for_ns = (5 + random_() % 30) * kSecondNs;
    limits.open_at_most_ns = (30 + random_() % 100) * kSecondNs;
    limits.permits = static_cast<uint32_t>(1 + random_() % 3);
    limits.slow_call_ns = random_() % 4 == 0 ? kSecondNs / 2 : 0;
    return limits;
  }
  void change_mood() {
    Member& member = *ops_[random_() % kOps].members[random_() % (kImplementations - 1)];
    member.failing = random_() % 3 == 0 ? random_() % 101 : 0;
    member.slow = random_() % 5 == 0 ? random_() % 101 : 0;
    member.lying = random_() % 5 == 0 ? random_() % 101 : 0;
  }

  void follow(Op& op, Member& member, const BreakerChange& change) {
    for (uint8_t i = 0; i < change.count; ++i) {
      openings_ += change.steps[i].to == BreakerState::open ? 1 : 0;
      trace_ = (trace_ ^ change.steps[i].open_for_ns) * 0xBF58476D1CE4E5B9 + change.steps[i].cell;
    }
    note(member.wrong);
    op.group.follow(change, now_, [&] { return publish(op, change.at_once); });
    member.tell(change);
    note(member.wrong);
  }

  uint64_t publish(Op& op, bool at_once = false) {
    if (!at_once && op.published != 0 && now_ < op.published + health::kPublicationGapNs)
      note("7: two publications of an operator within 100 ms");
    ++publications_;
    ++op.publishing;
    run_for(random_() % 100);
    for (auto& member : op.members) {
      // The engine replaces decisions under a lock, and makes them from what is announced then.
      Fibers::current->pause();
      member->watched = member->breaker.data().announced_armed;
      member->published();
    }
    run_for(random_() % 100);
    --op.publishing;
    if (!at_once) op.published = now_;
    return now_;
  }

  void check_recovered() {
    for (Op& op : ops_) {
      for (auto& member : op.members) note(member->what_is_left());
    }
  }
  void note(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  std::mt19937_64 random_;
  uint64_t calls_left_, now_ = kSecondNs, trace_ = 0;
  uint64_t steps_ = 0, openings_ = 0, reloads_ = 0, publications_ = 0;
  size_t callers_done_ = 0;
  bool over_ = false;
  std::deque<Op> ops_;
  std::vector<size_t> runnable_;
  std::string wrong_;
};

}  // namespace opmux::test
