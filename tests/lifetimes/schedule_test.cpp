#include <malloc.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "forked.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// A number from the environment, which the long form sets.
uint64_t setting_of(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// An object that the engine holds for an implementation: a prepared state or a packed constant.
struct Held {
  static constexpr uint64_t kAlive = 0x616c697665616c69, kDead = 0xdeaddeaddeaddead;
  uint64_t state = kAlive;
  int64_t width = 0;
};

/// Makes and frees Held objects. A freed one is poisoned and stays allocated while 4,096 others are
/// freed, so that a later use is found without a sanitizer too.
class Objects {
 public:
  Objects() {
    while (dead_.size() < kKept) dead_.push_back(std::make_unique<Held>());
  }
  Held* make(int64_t width) {
    ++made;
    ++alive;
    return new Held{Held::kAlive, width};
  }
  void free(void* object) {
    auto* const held = static_cast<Held*>(object);
    if (std::exchange(held->state, Held::kDead) != Held::kAlive) ++freed_twice;
    --alive;
    const std::scoped_lock lock(mutex_);
    dead_.emplace_back(held);
    dead_.pop_front();
  }
  void check(const void* object, int64_t width) {
    const auto& held = *static_cast<const Held*>(object);
    if (held.state != Held::kAlive) ++used_after_free;
    if (held.width != width) ++mixed_up;
  }

  std::atomic<uint64_t> made{0}, used_after_free{0}, freed_twice{0}, mixed_up{0};
  std::atomic<int64_t> alive{0};

 private:
  static constexpr size_t kKept = 4096;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Held>> dead_;
};
Objects objects;
std::atomic<uint64_t> changes{0};    ///< operations of the administrator so far
std::atomic<int> blocked{0};         ///< kernels that wait for the administrator
std::atomic<bool> may_block{false};  ///< kernels may wait for the administrator

int64_t width_of(const opmux_call* call) { return call->args[0].value.tensor->shape[1]; }

int32_t run(void*, const opmux_call* call) {
  if (call->prepared != nullptr) objects.check(call->prepared, width_of(call));
  if (call->instance != nullptr) objects.check(call->instance, width_of(call));
  // Some calls last until the administrator has changed something.
  thread_local uint64_t calls = 0;
  if (++calls % 4096 == 0) {
    const uint64_t before = changes.load();
    ++blocked;
    while (changes.load() == before && may_block.load()) std::this_thread::yield();
    --blocked;
    if (call->prepared != nullptr) objects.check(call->prepared, width_of(call));
    if (call->instance != nullptr) objects.check(call->instance, width_of(call));
  }
  return OPMUX_OK;
}
int32_t prepare(void*, const opmux_call* call, void** prepared) {
  *prepared = objects.make(width_of(call));
  return OPMUX_OK;
}
void drop(void*, void* object) { objects.free(object); }
int32_t create(void*, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
  *instance = objects.make(0);
  return OPMUX_OK;
}
int32_t load(void*, void* instance, const opmux_arg* params, uint32_t, opmux_error*) {
  static_cast<Held*>(instance)->width = params[2].value.tensor->shape[0];
  return OPMUX_OK;
}

/// One runtime that eight threads call while one thread changes it.
class Schedule {
 public:
  static constexpr int kThreads = 8;
  static constexpr int64_t kWidths = 24;

  explicit Schedule(uint64_t seed) : random_(seed), seed_(seed) {
    for (int64_t width = 1; width <= kWidths; ++width) rows_.emplace_back(2, width);
    for (const Rows& rows : rows_) constants_.push_back(stage_.runtime.constant(rows.w).value());
    stage_.add({.id = "shaped/plain.one", .kind = Kind::reference});
    stage_.add({.id = "packed/plain.one", .kind = Kind::reference});
    for (std::optional<Registration>& each : held_) add(each);
  }

  /// Makes calls on all threads. At the end no call runs.
  void call(uint64_t calls_of_each) {
    may_block = true;
    std::vector<std::thread> threads;
    left_ = kThreads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        serve(seed_ * 100 + static_cast<uint64_t>(i), calls_of_each);
        --left_;
      });
    }
    while (left_.load() > 0) administer();
    may_block = false;
    for (std::thread& thread : threads) thread.join();
    total += calls_of_each * kThreads;
  }
  /// Frees everything that no call uses.
  void settle() {
    stage_.runtime.core().engine().trim();
    (void)stage_.runtime.core().engine().retired_waiting();
  }

  uint64_t total = 0, forks = 0;
  std::atomic<uint64_t> refused{0};

 private:
  void add(std::optional<Registration>& place) {
    const auto number = static_cast<size_t>(&place - held_.data());
    const std::string op = number % 2 == 0 ? "shaped" : "packed";
    Implementation what{.id = op + "/v" + std::to_string(number) + ".one",
                        .kind = Kind::default_,
                        .priority = static_cast<int>(100 + random_() % 100)};
    what.kernel.run = run;
    what.kernel.plan = prepare;
    what.kernel.plan_free = drop;
    if (number % 2 == 1) {
      what.kernel.create = create;
      what.kernel.load = load;
      what.kernel.destroy = drop;
    }
    place.emplace(stage_.runtime.implement(what).value());
  }

  void serve(uint64_t seed, uint64_t calls) {
    std::minstd_rand random(static_cast<uint32_t>(seed * 2 + 1));
    const Operator shaped = stage_.runtime.op("shaped").value();
    const Operator packed = stage_.runtime.op("packed").value();
    std::optional<Plan> plan;
    std::optional<PolicyScope> scope;
    for (uint64_t i = 0; i < calls; ++i) {
      const size_t at = random() % kWidths;
      const Rows& rows = rows_[at];
      if (i % 128 == 0) ++served_;
      if (i % 4096 == 4095) {
        scope.reset();
        scope.emplace(stage_.runtime, policy(random() % 40));
      }
      if (i % 512 == 511) {
        if (auto bound = shaped.bind(rows.y, rows.x)) plan.emplace(std::move(*bound));
        planned_ = at;
      }
      Status status;
      switch (random() % 3) {
        case 0: status = shaped(rows.y, rows.x); break;
        case 1: status = packed(rows.y, rows.x, constants_[at]); break;
        default:
          // The implementation of a plan may be withdrawn.
          if (plan && !(*plan)(rows_[planned_].y, rows_[planned_].x).ok()) plan.reset();
      }
      if (!status.ok()) ++refused;
    }
  }

  static Policy policy(uint64_t number) {
    Policy policy;
    policy.deny = {"impl:shaped/v" + std::to_string(number % 6) + ".one",
                   "impl:packed/v" + std::to_string(number % 7) + ".one"};
    return policy;
  }

  void administer() {
    switch (random_() % 8) {
      case 0:
      case 1: EXPECT_TRUE(stage_.runtime.policy().set(policy(random_() % 20)).ok()); break;
      case 2: EXPECT_TRUE(stage_.runtime.policy().reset().ok()); break;
      case 3: constants_[random_() % kWidths].changed(); break;
      case 4: {
        std::optional<Registration>& place = held_[random_() % held_.size()];
        // It waits for the calls of the implementation.
        may_block = false;
        EXPECT_TRUE(place->withdraw().ok());
        may_block = true;
        add(place);
        break;
      }
      case 5: stage_.runtime.core().engine().trim(); break;
      case 6:
        if (!under_thread_sanitizer() && random_() % 8 == 0) fork_one();
        break;
      default: (void)stage_.runtime.stats();
    }
    ++changes;
    // One change for about a hundred calls, and one if calls wait for it.
    const uint64_t before = served_.load();
    while (served_.load() == before && left_.load() > 0 && blocked.load() == 0)
      std::this_thread::yield();
  }

  void fork_one() {
    ++forks;
    EXPECT_TRUE(true_in_forked_child([&] {
      may_block = false;
      const Operator shaped = stage_.runtime.op("shaped").value();
      for (const Rows& rows : rows_) {
        if (!shaped(rows.y, rows.x).ok()) return false;
      }
      return objects.used_after_free == 0 && objects.mixed_up == 0;
    }));
  }

  std::mt19937_64 random_;
  const uint64_t seed_;
  Stage stage_;
  const Operator shaped_ = stage_.define("shaped(out Tensor y[N, H], Tensor x[N, H])");
  const Operator packed_ =
      stage_.define("packed(out Tensor y[N, H], Tensor x[N, H], const Tensor w[H])");
  std::deque<Rows> rows_;
  std::vector<Constant> constants_;
  std::array<std::optional<Registration>, 6> held_;
  std::atomic<int> left_{0};         ///< threads that make calls
  std::atomic<uint64_t> served_{0};  ///< counts every 128th call
  static thread_local size_t planned_;
};
thread_local size_t Schedule::planned_ = 0;

/// Random reloads, withdrawals, changes of constants, scopes, forks and calls that block, from a
/// seed. The long form makes 10^7 calls; see CMakeLists.txt.
TEST(Schedule, objects_in_use_live_and_others_are_freed) {
  const uint64_t calls = setting_of("OPMUX_LIFETIME_CALLS", 160'000);
  const uint64_t seeds = setting_of("OPMUX_LIFETIME_SEEDS", 1);
  mallopt(M_ARENA_MAX, 1);  // mallinfo2() counts one arena
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Schedule schedule(seed);
    constexpr uint64_t kRounds = 10;
    std::vector<size_t> bytes;
    std::vector<int64_t> alive;
    for (uint64_t round = 0; round < kRounds; ++round) {
      schedule.call(calls / seeds / kRounds / Schedule::kThreads);
      schedule.settle();
      bytes.push_back(mallinfo2().uordblks);
      alive.push_back(objects.alive.load());
    }
    std::cout << "seed " << seed << ": " << schedule.total << " calls, " << changes.load()
              << " changes, " << schedule.forks << " forks, " << objects.made.load()
              << " objects, at the end " << alive.back() << " alive, heap " << bytes.front() << " "
              << bytes[kRounds / 2] << " " << bytes.back() << " bytes\n";
    EXPECT_EQ(schedule.refused.load(), 0u);
    EXPECT_EQ(objects.used_after_free.load(), 0u);
    EXPECT_EQ(objects.freed_twice.load(), 0u);
    EXPECT_EQ(objects.mixed_up.load(), 0u);
    // All threads have ended, and each round starts new ones.
    const int64_t most = *std::max_element(alive.begin(), alive.begin() + kRounds / 2);
    EXPECT_LE(alive.back(), std::max<int64_t>(2 * most, 200));
    // AddressSanitizer replaces the heap, and finds leaks itself.
    if (!under_address_sanitizer() && !under_thread_sanitizer()) {
      const size_t before = *std::max_element(bytes.begin() + 2, bytes.begin() + kRounds / 2);
      // The sizes of caches vary from round to round; memory that leaks is in all later rounds.
      EXPECT_LE(*std::min_element(bytes.end() - 3, bytes.end()), before + before / 100 + 65536);
    }
  }
  EXPECT_EQ(objects.alive.load(), 0) << "objects that outlive their runtime";
}

}  // namespace
}  // namespace opmux::test
