#include "hot_path_counting.hpp"
#include "stage.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <mutex>

namespace opmux::test {
namespace {

constexpr int kOperators = 300, kImplementations = 4;

int32_t count_run(void* runs, const opmux_call*) {
  ++*static_cast<uint64_t*>(runs);
  return OPMUX_OK;
}

/// Operators with a separate implementation for every row width.
class World {
 public:
  World() : runtime_(Runtime::create(bare()).value()) {
    for (int i = 0; i < kOperators; ++i) {
      const std::string name = "op" + std::to_string(i);
      const Status defined = runtime_.define(
          name + "(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], float eps = 1e-6)");
      if (!defined.ok()) throw Error(defined);
      for (int k = 0; k < kImplementations; ++k) {
        registrations_.push_back(
            runtime_
                .implement({.id = name + "/test.v" + std::to_string(k),
                            .kind = Kind::default_,
                            .priority = 100 + k,
                            .caps = Caps{}.multiple_of("H", 1 << k).dtypes({f32}),
                            .kernel = {.user_data = &runs[i][k], .run = count_run}})
                .value());
      }
      names_.push_back(name);
      operators_.push_back(runtime_.op(name).value());
    }
    for (int k = 0; k < kImplementations; ++k) tensors_.emplace_back(2, 1 << k);
    for (int i = 0; i < kOperators; ++i) {
      for (const Rows& t : tensors_) plans_.push_back(operators_[i].bind(t.y, t.x, t.w).value());
    }
  }

  bool by_handle() {
    bool good = true;
    for (const Operator& op : operators_) {
      for (const Rows& t : tensors_) good &= op(t.y, t.x, t.w).ok();
    }
    return good;
  }
  /// Every call has a different number of rows than the previous one.
  bool by_handle_with_other_rows() {
    bool good = true;
    for (const Operator& op : operators_) {
      for (int64_t rows = 1; rows <= 4; ++rows) {
        const TensorView y(memory_, f32, {rows, 8}), x(memory_, f32, {rows, 8});
        good &= op(y, x).ok();
      }
    }
    return good;
  }
  bool by_name() {
    bool good = true;
    for (const std::string& name : names_) {
      for (const Rows& t : tensors_) good &= runtime_.call(name, t.y, t.x, t.w, 1e-5).ok();
    }
    return good;
  }
  bool by_plan() {
    bool good = true;
    for (size_t i = 0; i < plans_.size(); ++i) {
      const Rows& t = tensors_[i % kImplementations];
      good &= plans_[i](t.y, t.x, t.w).ok();
    }
    return good;
  }
  bool by_plan_unchecked() {
    bool good = true;
    for (size_t i = 0; i < plans_.size(); ++i) {
      const Rows& t = tensors_[i % kImplementations];
      good &= plans_[i].prepare(t.y, t.x, t.w).ok() && plans_[i].run_unchecked().ok();
    }
    return good;
  }
  const Operator& some() const { return operators_[0]; }
  /// Whether each implementation ran `times` times since the last query.
  bool each_ran(uint64_t times) {
    bool good = true;
    for (auto& op : runs) {
      for (uint64_t& count : op) good &= std::exchange(count, 0) == times;
    }
    return good;
  }

  uint64_t runs[kOperators][kImplementations] = {};

 private:
  Runtime runtime_;
  std::vector<Registration> registrations_;
  std::vector<Operator> operators_;
  std::vector<std::string> names_;
  std::deque<Rows> tensors_;
  std::vector<Plan> plans_;
  float memory_[64] = {};
};

World& world() {
  static World all;
  return all;
}

void expect_nothing(const Counted& counted) {
  ASSERT_TRUE(counted.good);
  EXPECT_EQ(counted.counts.allocations, 0u);
  EXPECT_EQ(counted.counts.frees, 0u);
  EXPECT_EQ(counted.counts.locks, 0u);
  EXPECT_EQ(counted.counts.clocks, 0u);
  EXPECT_EQ(counted.counts.system_calls, 0u);
}

TEST(HotPath, guarded_calls_make_no_allocation_lock_or_system_call) {
  World& all = world();
  expect_nothing(count_second_run([&] { return all.by_handle() && all.each_ran(1); }));
}

TEST(HotPath, calls_with_another_shape_of_the_same_plan_make_none_either) {
  World& all = world();
  expect_nothing(count_second_run([&] { return all.by_handle_with_other_rows(); }));
}

TEST(HotPath, calls_by_name_make_none_either) {
  World& all = world();
  expect_nothing(count_second_run([&] { return all.by_name() && all.each_ran(1); }));
}

TEST(HotPath, bound_plans_make_none_either) {
  World& all = world();
  expect_nothing(count_second_run([&] { return all.by_plan() && all.each_ran(1); }));
  expect_nothing(count_second_run([&] { return all.by_plan_unchecked() && all.each_ran(1); }));
}

int32_t create_nothing(void*, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
  static int made;
  *instance = &made;
  return OPMUX_OK;
}

int32_t count_packed_run(void* runs, const opmux_call* call) {
  if (call->instance != nullptr) ++*static_cast<uint64_t*>(runs);
  return OPMUX_OK;
}

// Uses more constants than a thread caches plans, because all constants share one plan.
TEST(HotPath, calls_with_packed_constants_and_with_options_make_none_either) {
  Runtime runtime = Runtime::create(bare()).value();
  ASSERT_TRUE(
      runtime.define("mul(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H])").ok());
  uint64_t runs = 0;
  const Registration held = runtime
                                .implement({.id = "mul/test.packed",
                                            .kind = Kind::default_,
                                            .kernel = {.user_data = &runs,
                                                       .run = count_packed_run,
                                                       .create = create_nothing,
                                                       .destroy = [](void*, void*) {}}})
                                .value();
  const Operator mul = runtime.op("mul").value();
  const Rows t;
  std::deque<Constant> constants;
  for (int i = 0; i < 20; ++i) constants.push_back(runtime.constant(t.w).value());
  Plan plan = mul.bind(t.y, t.x, constants[0]).value();
  expect_nothing(count_second_run([&] {
    runs = 0;
    bool good = true;
    for (const Constant& w : constants) {
      good &= mul(t.y, t.x, w).ok();
      good &= mul.with({.max_threads = 2})(t.y, t.x, w).ok();
      good &= plan(t.y, t.x, constants[0]).ok();
    }
    return good && runs == 60;
  }));
}

// Checks the counters: each kind of event is counted.
TEST(HotPath, an_allocation_a_lock_a_clock_and_a_system_call_are_counted) {
  static std::mutex mutex;
  static void* volatile kept;
  const Counted allocating = count_second_run([] {
    kept = ::operator new(64);
    ::operator delete(kept);
    return true;
  });
  ASSERT_TRUE(allocating.good);
  EXPECT_EQ(allocating.counts.allocations, 1u);
  EXPECT_EQ(allocating.counts.frees, 1u);
  const Counted locking = count_second_run([] {
    const std::lock_guard lock(mutex);
    return true;
  });
  ASSERT_TRUE(locking.good);
  EXPECT_EQ(locking.counts.locks, 1u);
  const Counted timing = count_second_run(
      [] { return std::chrono::steady_clock::now().time_since_epoch().count() != 0; });
  ASSERT_TRUE(timing.good);
  EXPECT_EQ(timing.counts.clocks, 1u);
  const Counted asking = count_second_run([] { return syscall(SYS_getppid) != 0; });
  ASSERT_TRUE(asking.good);
  EXPECT_EQ(asking.counts.system_calls, 1u);
}

// A first decision does use these resources, which shows that the tests above measure warm calls.
TEST(HotPath, a_first_decision_is_seen_by_the_counters) {
  World& all = world();
  float memory[64] = {};
  int64_t h = 1;
  const Counted counted = count_second_run([&] {
    const TensorView y(memory, f32, {1, 1, h}), x(memory, f32, {1, 1, h});
    h *= 2;
    CallReport report;
    return all.some().with(report)(y, x).ok();
  });
  ASSERT_TRUE(counted.good);
  EXPECT_GT(counted.counts.allocations, 0u);
  EXPECT_GT(counted.counts.clocks, 0u);
}

}  // namespace
}  // namespace opmux::test
