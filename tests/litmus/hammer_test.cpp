// Stress test: reader threads start, call, nest and exit while one writer publishes at 1 kHz and
// another one withdraws.
#include <gtest/gtest.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "protocol.hpp"

namespace litmus {
namespace {

constexpr int kReaders = 6;
constexpr int kCallsPerLife = 2000;
constexpr std::size_t kDeepest = kLevels + 2;

std::uint64_t seconds() {
  const char* text = std::getenv("OPMUX_LITMUS_SECONDS");
  return text ? std::strtoull(text, nullptr, 10) : 2;
}

// Counts milliseconds; a late reader also gets the ticks that it missed.
class Ticker {
 public:
  Ticker() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
    const itimerspec every_millisecond{{0, 1'000'000}, {0, 1'000'000}};
    timerfd_settime(fd_, 0, &every_millisecond, nullptr);
  }
  ~Ticker() { close(fd_); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  std::uint64_t wait() {
    std::uint64_t ticks = 0;
    return read(fd_, &ticks, sizeof ticks) == sizeof ticks ? ticks : 0;
  }

 private:
  int fd_;
};

struct Arena {
  Runtime<> runtime;
  std::array<std::atomic<std::uint64_t>, kOperators> floors{};  // Epoch of the last withdrawal.
  std::atomic<bool> stop_withdrawing = false;
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> damaged = 0;
  std::atomic<std::uint64_t> after_withdrawal = 0;
  std::atomic<std::uint64_t> lives = 0;
  std::atomic<std::uint64_t> hot_calls = 0;
  std::atomic<std::uint64_t> cold_calls = 0;
};

class Reader {
 public:
  explicit Reader(Arena& arena) : arena_(arena), scope_(arena.runtime) {
    random_ = scope_.block.number * 0x9e3779b97f4a7c15;
  }

  void live() {
    for (int i = 0; i < kCallsPerLife && !arena_.stop.load(std::memory_order_relaxed); ++i) {
      call(next() % kOperators);
    }
    arena_.hot_calls += scope_.block.hot_calls;
    arena_.cold_calls += scope_.block.cold_calls;
    ++arena_.lives;
  }

 private:
  std::uint64_t next() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ >> 16;
  }

  // One call in four nests, half of these on the same operator; one in 64 yields the processor.
  void call(std::size_t op) {
    const std::uint64_t floor = arena_.floors[op].load(std::memory_order_acquire);
    arena_.runtime.call(scope_.block, op, [&](const Line& line) {
      check(line, floor);
      const std::uint64_t dice = next();
      if (dice % 64 == 1) std::this_thread::yield();
      if (dice % 4 == 0 && scope_.block.depth < kDeepest) {
        call(dice % 8 == 0 ? op : next() % kOperators);
      }
      check(line, floor);
    });
  }

  void check(const Line& line, std::uint64_t floor) {
    if (!line.intact()) ++arena_.damaged;
    if (line.plan->state->epoch < floor) ++arena_.after_withdrawal;
  }

  Arena& arena_;
  ThreadScope<Runtime<>> scope_;
  std::uint64_t random_;
};

void keep_readers_coming(Arena& arena) {
  while (!arena.stop.load(std::memory_order_relaxed)) {
    std::thread([&arena] { Reader(arena).live(); }).join();
  }
}

void withdraw_in_turn(Arena& arena) {
  for (std::size_t op = 0; !arena.stop_withdrawing; op = (op + 1) % kOperators) {
    const std::uint64_t floor = arena.runtime.withdraw(op);
    arena.floors[op].store(floor, std::memory_order_release);
    std::this_thread::yield();
  }
}

void publish_every_millisecond(Arena& arena, std::uint64_t total) {
  Ticker ticker;
  std::uint64_t published = 0;
  while (published < total) {
    for (std::uint64_t due = ticker.wait(); due > 0; --due) {
      arena.runtime.publish(published++ * 7 % kOperators);
    }
  }
}

TEST(LitmusHammer, no_call_ever_sees_a_freed_state_and_memory_stays_flat) {
  if (!register_membarrier()) GTEST_SKIP() << "this kernel has no private expedited membarrier";
  Arena arena;
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i) threads.emplace_back([&] { keep_readers_coming(arena); });
  std::thread withdrawer([&] { withdraw_in_turn(arena); });
  publish_every_millisecond(arena, seconds() * 1000);
  arena.stop_withdrawing = true;
  withdrawer.join();

  // All retired states are freed although the readers continue to run.
  for (arena.runtime.reclaim(); arena.runtime.retired() > 0; arena.runtime.reclaim()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(arena.runtime.alive(), kOperators);
  arena.stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.damaged, 0u);
  EXPECT_EQ(arena.after_withdrawal, 0u);
  EXPECT_GT(arena.lives, std::uint64_t{kReaders});
  EXPECT_GT(arena.hot_calls, 0u);
  EXPECT_GT(arena.cold_calls, 0u);
}

}  // namespace
}  // namespace litmus
