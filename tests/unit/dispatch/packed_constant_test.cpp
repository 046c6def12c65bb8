#include "dispatch/plan/packed_constant.hpp"

#include <barrier>
#include <optional>
#include <thread>

#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr const char* kScale =
    "scale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H], int n = 0)";

/// An implementation that copies the constant's first number and counts its calls.
struct Packer {
  struct Copy {
    float first = 0;
    int64_t n = 0;
  };
  std::atomic<int> creates{0}, loads{0}, destroys{0}, plans{0}, runs{0};
  int32_t create_ends = OPMUX_OK, load_ends = OPMUX_OK, plan_ends = OPMUX_OK;
  uint64_t says_bytes = 0;
  std::function<void(const opmux_call&)> running = [](const opmux_call&) {};
  std::atomic<const Copy*> seen{nullptr};
  std::atomic<float> first{0};

  static Packer& of(void* self) { return *static_cast<Packer*>(self); }
  static int32_t create(void* self, const opmux_arg* options, uint32_t count, void** instance,
                        opmux_error*) {
    EXPECT_EQ(count, 4u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(options[i].tag, uint32_t{OPMUX_ARG_NONE});
    if (of(self).create_ends != OPMUX_OK) return of(self).create_ends;
    ++of(self).creates;
    *instance = new Copy{0, options[3].value.i64};
    return OPMUX_OK;
  }
  static int32_t load(void* self, void* instance, const opmux_arg* params, uint32_t, opmux_error*) {
    EXPECT_EQ(params[1].tag, uint32_t{OPMUX_ARG_NONE});
    ++of(self).loads;
    static_cast<Copy*>(instance)->first = *static_cast<float*>(params[2].value.tensor->data);
    return of(self).load_ends;
  }
  static void destroy(void* self, void* instance) {
    ++of(self).destroys;
    delete static_cast<Copy*>(instance);
  }
  static int32_t describe(void* self, void*, const opmux_node_sink* sink) {
    const std::string bytes = std::to_string(of(self).says_bytes);
    sink->attribute(sink->context, opmux_str_of("packed_bytes"), {bytes.data(), bytes.size()});
    return OPMUX_OK;
  }
  static int32_t plan(void* self, const opmux_call* call, void** prepared) {
    if (of(self).plan_ends != OPMUX_OK) return of(self).plan_ends;
    ++of(self).plans;
    *prepared = call->instance != nullptr ? self : nullptr;
    return OPMUX_OK;
  }
  static void plan_free(void*, void*) {}
  static int32_t run(void* self, const opmux_call* call) {
    Packer& mine = of(self);
    EXPECT_EQ(call->prepared != nullptr, call->instance != nullptr);
    ++mine.runs;
    mine.seen = static_cast<const Copy*>(call->instance);
    mine.first = call->instance != nullptr ? static_cast<const Copy*>(call->instance)->first : -1;
    mine.running(*call);
    return OPMUX_OK;
  }
  KernelFunctions functions() {
    return {this,      run,     plan,
            plan_free, nullptr, create,
            load,      destroy, says_bytes != 0 ? describe : nullptr};
  }
};

struct PackedConstantTest : testing::Test {
  explicit PackedConstantTest(Options options = bare()) : stage(std::move(options)) {}

  void implement(uint64_t says_bytes = 0) {
    packer.says_bytes = says_bytes;
    held = stage.runtime
               .implement({.id = "scale/packing.one",
                           .kind = Kind::default_,
                           .kernel = packer.functions(),
                           .plan_reads = {{{OPMUX_FACT_DIM, "H"}}}})
               .value();
    stage.add({.id = "scale/plain.one", .kind = Kind::reference});
  }
  Constant constant(const Rows& rows) { return stage.runtime.constant(rows.w).value(); }
  /// The value that the implementation read from its packed copy; -1 if it had none.
  float call(const Constant& w) {
    packer.first = -2;
    EXPECT_TRUE(op(t.y, t.x, w).ok());
    return packer.first;
  }

  Packer packer;
  Stage stage;
  Operator op = stage.define(kScale);
  Registration held;
  Rows t, other;
};

TEST_F(PackedConstantTest, is_packed_by_the_first_call_and_used_by_later_ones) {
  implement();
  t.weight[0] = 3;
  const Constant w = constant(t);
  EXPECT_EQ(w.packs(), 0u);
  EXPECT_EQ(call(w), 3);
  t.weight[0] = 4;  // A call that reads the tensor again would see it.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(w), 3);
  EXPECT_EQ(packer.creates, 1);
  EXPECT_EQ(packer.loads, 1);
  EXPECT_EQ(packer.plans, 1);
  EXPECT_EQ(w.packs(), 1u);
}

TEST_F(PackedConstantTest, constants_of_one_shape_share_plans_and_keep_their_copies_apart) {
  implement();
  t.weight[0] = 1, other.weight[0] = 2;
  const Constant a = constant(t), b = constant(other);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(call(a), 1);
    EXPECT_EQ(call(b), 2);
  }
  EXPECT_EQ(packer.creates, 2);
  EXPECT_EQ(packer.plans, 1);
}

TEST_F(PackedConstantTest, two_constants_of_the_same_memory_have_separate_copies) {
  implement();
  t.weight[0] = 1;
  const Constant a = constant(t);
  EXPECT_EQ(call(a), 1);
  t.weight[0] = 2;
  const Constant b = constant(t);
  EXPECT_EQ(call(b), 2);
  EXPECT_EQ(call(a), 1);
}

TEST_F(PackedConstantTest, is_repacked_after_a_change) {
  implement();
  Constant w = constant(t);
  EXPECT_EQ(call(w), 0);
  t.weight[0] = 5;
  EXPECT_EQ(call(w), 0);
  w.changed();
  EXPECT_EQ(w.version(), 1u);
  EXPECT_EQ(w.packs(), 0u);
  EXPECT_EQ(packer.destroys, 1);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(call(w), 5);
  EXPECT_EQ(packer.creates, 2);
}

TEST_F(PackedConstantTest, a_call_that_runs_while_it_changes_keeps_its_copy_to_the_end) {
  implement();
  Constant w = constant(t);
  int destroyed_inside = -1;
  for (int i = 0; i < 2; ++i) {
    packer.running = [&](const opmux_call&) {
      w.changed();
      destroyed_inside = packer.destroys;
    };
    ASSERT_TRUE(op(t.y, t.x, w).ok());
    EXPECT_EQ(destroyed_inside, i) << (i == 0 ? "on a cold call" : "on a warm call");
    EXPECT_EQ(stage.runtime.packed_bytes(), 0u);
    EXPECT_EQ(packer.destroys, i + 1);
  }
}

TEST_F(PackedConstantTest, copies_are_counted_and_go_with_their_owner) {
  implement(1000);
  {
    const Constant a = constant(t), b = constant(other);
    call(a), call(b);
    EXPECT_EQ(a.packed_bytes(), 1000u);
    EXPECT_EQ(stage.runtime.packed_bytes(), 2000u);
    EXPECT_EQ(stage.stats("scale/packing.one").packed_bytes, 2000u);
  }
  EXPECT_EQ(packer.destroys, 2);
  EXPECT_EQ(stage.runtime.packed_bytes(), 0u);
  EXPECT_EQ(stage.stats("scale/packing.one").packed_bytes, 0u);
}

TEST_F(PackedConstantTest, without_a_description_the_size_of_the_tensor_counts) {
  implement();
  const Constant w = constant(t);
  call(w);
  EXPECT_EQ(w.packed_bytes(), 8u * sizeof(float));
}

TEST_F(PackedConstantTest, moves_with_its_copies) {
  implement();
  t.weight[0] = 1;
  Constant a = constant(t);
  EXPECT_EQ(call(a), 1);
  Constant b = std::move(a);
  EXPECT_EQ(call(b), 1);
  EXPECT_EQ(packer.creates, 1);
  b = constant(other);
  EXPECT_EQ(packer.destroys, 1) << "the previous copy is destroyed";
  EXPECT_EQ(call(b), 0);
}

TEST_F(PackedConstantTest, a_bare_tensor_is_never_packed) {
  implement();
  const Constant w = constant(t);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(op(t.y, t.x, t.w).ok());
    EXPECT_EQ(packer.first, -1);
    ASSERT_TRUE(op(t.y, t.x, w.view()).ok());
    EXPECT_EQ(packer.first, -1);
    EXPECT_EQ(call(w), 0) << "calls with and without a constant do not interfere";
  }
  EXPECT_EQ(packer.creates, 1);
  EXPECT_EQ(packer.plans, 2) << "states are prepared with a copy and without";
}

TEST_F(PackedConstantTest, where_the_schema_knows_no_constant_it_is_a_tensor) {
  implement();
  const Constant x = stage.runtime.constant(t.x).value();
  ASSERT_TRUE(op(t.y, x, t.w).ok());
  EXPECT_EQ(packer.first, -1);
  EXPECT_EQ(packer.creates, 0);
}

TEST_F(PackedConstantTest, an_implementation_without_instances_gets_a_tensor) {
  stage.add({.id = "scale/plain.one", .kind = Kind::reference});
  const Constant w = constant(t);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x, w).ok()); }), "scale/plain.one");
  }
  EXPECT_EQ(w.packs(), 0u);
}

TEST_F(PackedConstantTest, options_and_reports_take_the_same_copy) {
  implement();
  const Constant w = constant(t);
  call(w);
  CallReport report;
  ASSERT_TRUE(op.with(report, {.max_threads = 2})(t.y, t.x, w).ok());
  EXPECT_EQ(report.implementation, "scale/packing.one");
  EXPECT_EQ(packer.first, 0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(op.with({.max_threads = 2})(t.y, t.x, w).ok());
  EXPECT_EQ(packer.first, 0);
  EXPECT_EQ(packer.creates, 1);
  EXPECT_EQ(packer.runs, 4);
}

TEST_F(PackedConstantTest, a_constant_that_cannot_be_packed_goes_to_the_next_candidate) {
  implement();
  const Constant w = constant(t);
  const auto who = [&] { return ran_by([&] { EXPECT_TRUE(op(t.y, t.x, w).ok()); }); };
  packer.create_ends = OPMUX_DECLINED;
  EXPECT_EQ(who(), "scale/plain.one");
  EXPECT_EQ(stage.stats("scale/packing.one").declined, 1u);
  packer.create_ends = OPMUX_OK, packer.load_ends = OPMUX_FAILED;
  const Constant again = constant(other);
  const Rows wide(2, 16);
  const Constant third = constant(wide);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(wide.y, wide.x, third).ok()); }), "scale/plain.one");
  EXPECT_EQ(packer.destroys, packer.creates) << "every instance is destroyed";
  EXPECT_EQ(packer.runs, 0);
}

TEST_F(PackedConstantTest, threads_that_start_together_pack_once) {
  implement();
  const Constant w = constant(t);
  constexpr int kThreads = 8;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Rows mine;
      start.arrive_and_wait();
      for (int k = 0; k < 20; ++k) EXPECT_TRUE(op(mine.y, mine.x, w).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(packer.creates, 1);
  EXPECT_EQ(packer.runs, kThreads * 20);
}

TEST_F(PackedConstantTest, changes_while_other_threads_call) {
  implement();
  Constant w = constant(t);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  // Detects a copy that was freed too early.
  packer.running = [](const opmux_call& call) {
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(static_cast<const volatile Packer::Copy*>(call.instance)->n, 0);
    }
  };
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const Rows mine;
      while (!stop) EXPECT_TRUE(op(mine.y, mine.x, w).ok());
    });
  }
  while (packer.runs < 100) std::this_thread::yield();
  for (int i = 0; i < 300; ++i) {
    w.changed();
    const int before = packer.runs;
    while (packer.runs < before + 3) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  w.changed();
  EXPECT_EQ(stage.runtime.packed_bytes(), 0u);
  EXPECT_EQ(packer.creates, packer.destroys);
  EXPECT_GT(packer.creates, 100);
}

TEST_F(PackedConstantTest, copies_go_when_their_implementation_is_withdrawn) {
  implement();
  Packer second;
  auto also = stage.runtime.implement({.id = "scale/packing.two",
                                       .kind = Kind::default_,
                                       .priority = 140,
                                       .kernel = second.functions()});
  const Constant w = constant(t);
  call(w);
  ASSERT_TRUE(held.withdraw().ok());
  EXPECT_EQ(packer.destroys, 1);
  EXPECT_EQ(w.packs(), 0u);
  ASSERT_TRUE(op(t.y, t.x, w).ok());
  EXPECT_EQ(second.runs, 1);
  EXPECT_EQ(w.packs(), 1u);
}

TEST_F(PackedConstantTest, needs_data) {
  EXPECT_EQ(stage.runtime.constant(TensorView()).error().code(), Code::invalid_argument);
  EXPECT_EQ(
      stage.runtime.constant(TensorView(static_cast<void*>(nullptr), f32, {2})).error().reason(),
      "constant.absent");
}

struct LimitedConstantTest : PackedConstantTest {
  static Options limited() {
    Options options = bare();
    options.max_packed_bytes = 1500;
    return options;
  }
  LimitedConstantTest() : PackedConstantTest(limited()) { implement(1000); }
};

TEST_F(LimitedConstantTest, a_copy_beyond_the_limit_is_not_packed_and_calls_still_work) {
  std::optional<Constant> a(constant(t));
  Constant b = constant(other);
  EXPECT_EQ(call(*a), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(b), -1);
  EXPECT_EQ(b.packs(), 0u);
  EXPECT_EQ(b.packed_bytes(), 0u);
  EXPECT_EQ(packer.creates, 2) << "not tried again";
  EXPECT_EQ(stage.runtime.packed_bytes(), 1000u);
  EXPECT_EQ(call(*a), 0) << "with its copy, between calls without one";
  a.reset();
  b.changed();
  EXPECT_EQ(call(b), 0) << "there is room now";
}

TEST_F(PackedConstantTest, a_bound_plan_runs_with_the_copy) {
  implement();
  t.weight[0] = 1, other.weight[0] = 2;
  Constant a = constant(t);
  const Constant b = constant(other);
  Plan plan = op.bind(t.y, t.x, a).value();
  EXPECT_EQ(packer.creates, 1);
  ASSERT_TRUE(plan(t.y, t.x, a).ok());
  EXPECT_EQ(packer.first, 1);
  ASSERT_TRUE(plan(t.y, t.x, b).ok());
  EXPECT_EQ(packer.first, 2) << "the copy of the other constant";
  t.weight[0] = 3;
  a.changed();
  ASSERT_TRUE(plan(t.y, t.x, a).ok());
  EXPECT_EQ(packer.first, 3) << "the copy of the new version";
  ASSERT_TRUE(plan.prepare(t.y, t.x, b).ok());
  ASSERT_TRUE(plan.run_unchecked().ok());
  EXPECT_EQ(packer.first, 2);
  EXPECT_EQ(plan(t.y, t.x, t.w).code(), Code::outside_plan) << "bound for constants";
  ASSERT_TRUE(plan.refresh().ok());
  ASSERT_TRUE(plan(t.y, t.x, a).ok());
  EXPECT_EQ(packer.first, 3);
}

TEST_F(PackedConstantTest, a_bound_plan_keeps_the_copy_it_was_bound_with) {
  implement();
  t.weight[0] = 1;
  std::optional<Constant> a(constant(t));
  Plan plan = op.bind(t.y, t.x, *a).value();
  ASSERT_TRUE(plan.prepare(t.y, t.x, *a).ok());
  a.reset();
  EXPECT_EQ(packer.destroys, 0);
  ASSERT_TRUE(plan.refresh().ok()) << "decides again without packing";
  EXPECT_EQ(packer.creates, 1);
  EXPECT_EQ(packer.destroys, 1);
}

TEST_F(LimitedConstantTest, a_bound_plan_refuses_a_constant_without_the_copy_it_wants) {
  const Constant a = constant(t), b = constant(other);
  Plan plan = op.bind(t.y, t.x, a).value();
  EXPECT_EQ(plan(t.y, t.x, b).reason(), "plan.constant");
  EXPECT_TRUE(op(t.y, t.x, b).ok());
}

}  // namespace
}  // namespace opmux::test
