#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "belongings.hpp"
#include "forked.hpp"
#include "schedule.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kCallers = 4;
constexpr size_t kMostRows = 64, kMostWidth = 1024;

/// The largest width of a call, drawn from `word`. One in 64 is wide: up to a width that grows from
/// 64 to kMostWidth with the calls that the thread has made, and then starts over, so that
/// workspaces grow, stay unused and grow again.
constexpr uint64_t widest(uint64_t word, uint64_t calls) {
  return (word >> 48) % 64 == 0 ? uint64_t{64} << (calls >> 18) % 5 : 64;
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// A shared library that is loaded only while it is needed.
class Module {
 public:
  void load() {
    handle_ = dlopen(OPMUX_CHAOS_MODULE, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) std::fprintf(stderr, "%s\n", dlerror());
    compute = reinterpret_cast<TwicePlusOne>(dlsym(handle_, "chaos_twice_plus_one"));
  }
  void unload() {
    compute = nullptr;
    dlclose(handle_);
  }
  TwicePlusOne compute = nullptr;

 private:
  void* handle_ = nullptr;
};

/// One operator with two implementations that misbehave, one whose code is loaded and unloaded, and
/// a reliable reference.
class ChaosWorld {
 public:
  explicit ChaosWorld(uint64_t seed) : wild_(seed), tame_(seed + 1), draw_(seed) {
    op_ = stage_.define("chaos(out Tensor y[..., H], Tensor x[..., H])");
    held_.push_back(stage_.runtime
                        .implement({.id = wild_kernel_.id,
                                    .kind = Kind::default_,
                                    .kernel = {.user_data = &wild_kernel_,
                                               .run = run_in_workspace,
                                               .workspace = workspace_for}})
                        .value());
    held_.push_back(add("chaos/plain.one", Kind::reference, plain_, twice_plus_one));
    load_plugin();
    stage_.runtime.health().on_breaker([this, self = getpid()](const BreakerEvent& event) {
      // Another thread may have held the lock of wrong_results_ when this process forked a child.
      if (getpid() != self) return;
      if (event.to == BreakerState::open) openings_.fetch_add(1);
      wrong_results_.add(event);
    });
  }

  ~ChaosWorld() { unload_plugin(); }
  ChaosWorld(const ChaosWorld&) = delete;
  ChaosWorld& operator=(const ChaosWorld&) = delete;

  /// Calls until stop_ is set. Every call must succeed, with correct results unless an
  /// implementation deliberately corrupted them.
  void serve(uint64_t seed) {
    std::vector<float> in(kMostRows * kMostWidth), out(in.size());
    for (uint64_t i = 0; !stop_.load(std::memory_order_relaxed); ++i) {
      const uint64_t word = FaultSchedule::mix(seed + i);
      const auto rows = static_cast<int64_t>(1 + word % kMostRows),
                 width = static_cast<int64_t>(1 + (word >> 8) % widest(word, i));
      const auto first = static_cast<float>(word % 1000);
      in[0] = first;
      in[static_cast<size_t>(rows * width - 1)] = first;
      const auto began = steady_clock::now();
      const Status status = op_(TensorView(out.data(), f32, {rows, width}),
                                TensorView(in.data(), f32, {rows, width}));
      const bool right =
          out[0] == 2 * first + 1 && out[static_cast<size_t>(rows * width - 1)] == 2 * first + 1;
      if (!status.ok()) lost_.fetch_add(1);
      if (status.ok() && !right && spoilt_by == nullptr) wrong_.fetch_add(1);
      if (status.ok() && !right && spoilt_by != nullptr)
        wrong_results_.add(spoilt_by, rows, width, began);
      calls_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  /// Injects one fault or changes something while calls run.
  void disturb() {
    faults_++;
    const uint64_t word = FaultSchedule::mix(draw_++);
    switch (word % 10) {
      case 0: return wild_.set(Fault::fail, 1000);
      case 1: return wild_.set(static_cast<Fault>(1 + (word >> 8) % 4), 300);
      case 2: return tame_.set(static_cast<Fault>(1 + (word >> 8) % 4), 500);
      case 3: return wild_.set(Fault::none, 0);
      case 4: return reload(word >> 8);
      case 5: unload_plugin(); return load_plugin();
      case 6: return force(word >> 8);
      case 7: return wild_.set(Fault::corrupt, 1000);
      case 8: return tame_.set(Fault::corrupt, 1000);
      default: return fork_and_call();
    }
  }

  void run(milliseconds time, milliseconds between) {
    std::vector<std::thread> callers;
    for (uint64_t i = 0; i < kCallers; ++i) callers.emplace_back([this, i] { serve(i << 32); });
    const ProcessorTime began = ProcessorTime::now();
    auto next = steady_clock::now();
    const auto until = next + time;
    // Memory rises and falls with the queue of the shadow check, so the largest amounts of the
    // second and the last third of the time are compared; growth between them is a leak.
    while (steady_clock::now() < until) {
      std::this_thread::sleep_until(next += between);
      disturb();
      const auto left = until - steady_clock::now();
      if (left < 2 * time / 3) (left < time / 3 ? after_ : before_).keep_most(Belongings());
    }
    after_.keep_most(Belongings());
    busy_ = ProcessorTime::now().share_since(began);
    stop_.store(true);
    for (std::thread& caller : callers) caller.join();
  }

  void expect_well() {
    std::printf(
        "%llu calls, %llu faults, %llu openings, %llu lost, %llu wrong; busy with %.0f %% of the "
        "processors; %zu spoilt, %zu of them after their class had opened, %zu opened for it; "
        "memory %zu -> %zu kB, files %zu -> %zu, threads %zu -> %zu\n",
        as_number(calls_), static_cast<unsigned long long>(faults_), as_number(openings_),
        as_number(lost_), as_number(wrong_), 100 * busy_, wrong_results_.count(),
        wrong_results_.late(), wrong_results_.mismatches(), before_.memory_kb, after_.memory_kb,
        before_.files, after_.files, before_.threads, after_.threads);
    EXPECT_EQ(lost_.load(), 0u);
    EXPECT_EQ(wrong_.load(), 0u);
    EXPECT_EQ(wild_kernel_.too_small.load(), 0u) << "workspaces smaller than asked for";
    EXPECT_EQ(wrong_results_.late(), 0u);
    EXPECT_GT(wrong_results_.mismatches(), 0u) << "the shadow check found no mismatch";
    EXPECT_EQ(children_lost_, 0);
    EXPECT_GT(calls_.load(), 1000u);
    EXPECT_GT(openings_.load(), 0u) << "no breaker opened";
    EXPECT_LE(after_.threads, before_.threads + 1);
    // Each caller may have the working folder open while it compares the state of its thread.
    EXPECT_LE(after_.files, before_.files + 2 + kCallers);
    if (under_address_sanitizer()) return;
    EXPECT_LE(after_.memory_kb, before_.memory_kb + before_.memory_kb / 4 + 8192);
  }
  /// The share of the available processor time that the test used.
  double busy() const { return busy_; }

 private:
  static Options compared() {
    Options options = bare();
    options.policy.shadow = {.every = 16, .share = 0.5};
    return options;
  }
  static unsigned long long as_number(const std::atomic<uint64_t>& number) { return number.load(); }

  Registration add(const char* id, Kind kind, FaultSchedule& schedule, TwicePlusOne compute) {
    Implementation what{.id = id, .kind = kind, .vendor = kind == Kind::vendor ? "acme" : ""};
    what.run = [&schedule, compute, id](CallFrame& call) {
      return run_scheduled(schedule, compute, id, call);
    };
    return stage_.runtime.implement(what).value();
  }
  void reload(uint64_t word) {
    std::string text =
        "opmux: 1\nbreaker: {open_for: 200ms, open_at_most: 1s, consecutive_failures: ";
    text += std::to_string(2 + word % 5) + "}\n";
    if (word % 3 == 0) text += "defaults: {prefer: [vendor]}\n";
    EXPECT_TRUE(stage_.runtime.policy().load(text, "chaos.yaml").ok());
  }
  /// Each load has another id, because breakers of an earlier load report changes after it was
  /// withdrawn: results are compared on another thread.
  void load_plugin() {
    module_.load();
    names_.push_back("chaos/tame.v" + std::to_string(names_.size()));
    plugin_ = add(names_.back().c_str(), Kind::vendor, tame_, module_.compute);
  }
  /// Unloads the code after withdrawing its implementation; a call that was still inside would
  /// crash.
  void unload_plugin() {
    EXPECT_TRUE(plugin_.withdraw().ok());
    wrong_results_.forget(names_.back());
    module_.unload();
  }
  void force(uint64_t word) {
    const auto what = static_cast<BreakerForce>(word % 3);
    // Forcing a breaker closed restarts its count of openings, and it may open again before its
    // event arrives.
    wrong_results_.forget("chaos/wild.one");
    EXPECT_TRUE(stage_.runtime.health().force_breaker("chaos/wild.one", what).ok());
  }
  void fork_and_call() {
    if (under_thread_sanitizer()) return;
    const bool well = true_in_forked_child([this] {
      float in[8] = {3}, out[8] = {};
      const TensorView x(in, f32, {1, 8}), y(out, f32, {1, 8});
      for (int i = 0; i < 20; ++i) {
        const Status called = op_(y, x);
        if (called.ok() && (out[0] == 7 || spoilt_by != nullptr)) continue;
        std::fprintf(stderr, "call %d of a child: %f, %s\n", i, static_cast<double>(out[0]),
                     std::string(called.message()).c_str());
        return false;
      }
      return true;
    });
    children_lost_ += well ? 0 : 1;
  }

  FaultSchedule wild_, tame_, plain_{0};
  WorkspaceKernel wild_kernel_{wild_, "chaos/wild.one"};
  // Declared before the stage, whose threads report breaker events until the end.
  WrongResults wrong_results_{[this] { return stage_.runtime.health().report().breakers; }};
  Stage stage_{compared()};
  Operator op_ = stage_.runtime.op("rms_norm").value();
  std::vector<Registration> held_;
  Module module_;
  std::deque<std::string> names_;  ///< of the loads of the plugin
  Registration plugin_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> calls_{0}, lost_{0}, wrong_{0}, openings_{0};
  uint64_t draw_, faults_ = 0;
  int children_lost_ = 0;
  double busy_ = 0;
  Belongings before_ = Belongings::none(), after_ = Belongings::none();
};

TEST(Chaos, calls_go_on_while_everything_misbehaves) {
  const uint64_t ms = number_from("OPMUX_CHAOS_MS", 3'000);
  ChaosWorld world(number_from("OPMUX_CHAOS_SEED", 1));
  world.run(milliseconds(ms), milliseconds(number_from("OPMUX_CHAOS_BETWEEN_MS", 30)));
  world.expect_well();
  const bool alone = std::getenv("OPMUX_CHAOS_ALONE") != nullptr;
  EXPECT_GE(world.busy(), alone ? 0.8 : 0.0);
}

}  // namespace
}  // namespace opmux::test

/// `chaos --soak`: half an hour, a fault a second.
int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (count > 1 && std::strcmp(arguments[1], "--soak") == 0) {
    setenv("OPMUX_CHAOS_MS", "1800000", 1);
    setenv("OPMUX_CHAOS_BETWEEN_MS", "1000", 1);
    setenv("OPMUX_CHAOS_ALONE", "1", 1);
  }
  return RUN_ALL_TESTS();
}
