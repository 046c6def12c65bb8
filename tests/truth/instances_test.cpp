#include "stage.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kTimes =
    "times(out Tensor y[N], Tensor x[N], int by = 2, float plus = 0.5, Tensor? table[N] = none)";

/// An implementation with state: counts the calls of each instance, and multiplies by its option.
class Counting {
 public:
  struct State {
    int64_t by = 0, calls = 0;
    double plus = 0;
    float loaded = -1;
    bool ended = false;
  };
  std::string id = "times/a.counting";
  int32_t create_outcome = OPMUX_OK;
  bool create_nothing = false;
  std::atomic<int> created{0}, loads{0}, destroyed{0}, null_instances{0};
  std::function<int32_t(State&)> body = [](State&) { return OPMUX_OK; };

  KernelFunctions functions() {
    return {.user_data = this,
            .run = run,
            .create = create,
            .load = load,
            .destroy = destroy,
            .describe = describe};
  }

 private:
  static Counting& of(void* self) { return *static_cast<Counting*>(self); }
  static int32_t create(void* self, const opmux_arg* options, uint32_t count, void** instance,
                        opmux_error*) {
    ++of(self).created;
    *instance = nullptr;
    if (of(self).create_outcome != OPMUX_OK) return of(self).create_outcome;
    if (of(self).create_nothing) return OPMUX_OK;
    auto state = std::make_unique<State>();
    EXPECT_EQ(count, 5u);
    EXPECT_EQ(options[0].tag, OPMUX_ARG_NONE);
    EXPECT_EQ(options[4].tag, OPMUX_ARG_NONE);
    state->by = options[2].tag == OPMUX_ARG_I64 ? options[2].value.i64 : -1;
    state->plus = options[3].tag == OPMUX_ARG_F64 ? options[3].value.f64 : -1;
    *instance = state.release();
    return OPMUX_OK;
  }
  static int32_t load(void* self, void* instance, const opmux_arg* params, uint32_t, opmux_error*) {
    ++of(self).loads;
    EXPECT_EQ(params[2].tag, OPMUX_ARG_NONE);
    static_cast<State*>(instance)->loaded =
        *static_cast<const float*>(params[4].value.tensor->data);
    return OPMUX_OK;
  }
  static void destroy(void* self, void* instance) {
    EXPECT_NE(instance, nullptr);
    ++of(self).destroyed;
    delete static_cast<State*>(instance);
  }
  static int32_t describe(void*, void* instance, const opmux_node_sink* sink) {
    const std::string by = std::to_string(static_cast<State*>(instance)->by);
    sink->attribute(sink->context, OPMUX_STR("packed_bytes"), OPMUX_STR("24"));
    sink->attribute(sink->context, OPMUX_STR("by"), {by.data(), by.size()});
    return OPMUX_OK;
  }
  static int32_t run(void* self, const opmux_call* call) {
    Counting& own = of(self);
    if (trail != nullptr) trail->push_back(own.id);
    if (call->instance == nullptr) {
      ++own.null_instances;
      return OPMUX_FAILED;
    }
    State& state = *static_cast<State*>(call->instance);
    EXPECT_EQ(call->args[2].value.i64, state.by);
    ++state.calls;
    auto* const y = static_cast<float*>(call->args[0].value.tensor->data);
    y[0] = static_cast<float>(state.calls * state.by);
    y[1] = state.loaded;
    return own.body(state);
  }
};

struct TruthOfInstances : testing::Test {
  TruthOfInstances() {
    held =
        stage.runtime
            .implement(
                {.id = own.id, .kind = Kind::default_, .priority = 200, .kernel = own.functions()})
            .value();
    stage.add({.id = "times/b.plain", .kind = Kind::default_, .priority = 100});
  }
  ~TruthOfInstances() override { EXPECT_EQ(own.null_instances, 0); }

  /// The implementation that a call through the instance runs.
  std::string runner(const Instance& instance) {
    return ran_by([&] { EXPECT_TRUE(instance(y, x).ok()); });
  }

  Counting own;
  Stage stage;
  Operator op = stage.define(kTimes);
  Registration held;
  float out[4] = {}, in[4] = {1, 2, 3, 4}, more[4] = {7, 7, 7, 7};
  TensorView y{out, f32, {4}}, x{in, f32, {4}}, table{more, f32, {4}};
};

TEST_F(TruthOfInstances, an_instance_is_created_once_with_its_options_and_kept_between_calls) {
  const Instance three = op.instance({{"by", 3}}).value();
  EXPECT_EQ(own.created, 0) << "made by the first call that runs it";
  for (int call = 1; call <= 4; ++call) {
    EXPECT_EQ(runner(three), "times/a.counting");
    EXPECT_EQ(out[0], static_cast<float>(3 * call));
  }
  EXPECT_EQ(own.created, 1);
  EXPECT_EQ(own.loads, 0) << "there are no parameters";
  CallReport report;
  ASSERT_TRUE(three.with(report, {.max_threads = 1})(y, x).ok());
  EXPECT_EQ(report.implementation, "times/a.counting");
  EXPECT_EQ(out[0], 15);
  EXPECT_EQ(own.created, 1);
  EXPECT_EQ(stage.stats("times/a.counting").calls, 5u);
}

TEST_F(TruthOfInstances, each_instance_has_its_own_state_and_options) {
  {
    const Instance three = op.instance({{"by", 3}}).value();
    Instance two = op.instance({{"plus", 1}}).value();
    EXPECT_EQ(runner(three), "times/a.counting");
    EXPECT_EQ(runner(two), "times/a.counting");
    EXPECT_EQ(out[0], 2);
    EXPECT_EQ(runner(three), "times/a.counting");
    EXPECT_EQ(out[0], 6);
    EXPECT_EQ(own.created, 2);
    const Instance moved = std::move(two);
    EXPECT_EQ(runner(moved), "times/a.counting");
    EXPECT_EQ(out[0], 4);
    EXPECT_EQ(own.destroyed, 0);
  }
  EXPECT_EQ(own.destroyed, 2);
}

TEST_F(TruthOfInstances, a_call_without_an_instance_runs_another_implementation) {
  const Instance three = op.instance({{"by", 3}}).value();
  for (int i = 0; i < 3; ++i) {  // in turn, so that each finds the plan of the other cached
    EXPECT_EQ(runner(three), "times/a.counting");
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(y, x).ok()); }), "times/b.plain");
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(y, x, 3).ok()); }), "times/b.plain");
  }
  const Candidate refused = candidate(op.explain(y, x), "times/a.counting");
  EXPECT_EQ(refused.code, "caps.instance");
  EXPECT_THAT(refused.reason, HasSubstr("Operator::instance"));
  EXPECT_EQ(three.explain(y, x).chosen, "times/a.counting");
  EXPECT_EQ(three.explain(none, x).chosen, "times/a.counting");
  EXPECT_THAT(op.explain(y, x).depends_on, testing::Contains("instance"));
  EXPECT_EQ(op.bind(y, x).value().implementation(), "times/b.plain");
  EXPECT_EQ(op.decide(y, x).value(), "times/b.plain");
  EXPECT_EQ(own.created, 1);
}

TEST_F(TruthOfInstances, without_another_implementation_the_error_says_that_an_instance_is_needed) {
  ASSERT_TRUE(stage.kernel("times/b.plain").registration.withdraw().ok());
  const Status status = op(y, x);
  EXPECT_EQ(status.code(), Code::no_candidate);
  EXPECT_THAT(std::string(status.message()), HasSubstr("times/a.counting: caps.instance"));
  EXPECT_EQ(runner(op.instance({}).value()), "times/a.counting");
}

TEST_F(TruthOfInstances, a_failure_falls_back_and_the_instance_reaches_the_next_one) {
  Counting second;
  second.id = "times/c.counting";
  const Registration also = stage.runtime
                                .implement({.id = second.id,
                                            .kind = Kind::default_,
                                            .priority = 150,
                                            .kernel = second.functions()})
                                .value();
  const Instance three = op.instance({{"by", 3}}).value();
  ASSERT_EQ(runner(three), "times/a.counting");
  ASSERT_EQ(runner(three), "times/a.counting");
  own.body = [](Counting::State&) { return OPMUX_RESOURCE; };
  for (int call = 1; call <= 2; ++call) {  // from a cached plan, then on the slow path
    EXPECT_THAT(runner(three), HasSubstr("times/c.counting"));
    EXPECT_EQ(out[0], static_cast<float>(3 * call));
  }
  EXPECT_EQ(own.created, 1);
  EXPECT_EQ(second.created, 1);
  second.body = own.body;
  EXPECT_THAT(runner(three), HasSubstr("times/b.plain"));
  EXPECT_EQ(second.null_instances, 0);
}

TEST_F(TruthOfInstances, a_plain_implementation_that_declines_passes_the_instance_on) {
  bool declines = false;
  stage.add(
      {.id = "times/d.plain", .kind = Kind::default_, .priority = 300, .run = [&](CallFrame&) {
         return declines ? Outcome::declined : Outcome::ok;
       }});
  const Instance three = op.instance({{"by", 3}}).value();
  EXPECT_EQ(runner(three), "times/d.plain");
  EXPECT_EQ(runner(three), "times/d.plain");
  declines = true;
  EXPECT_EQ(runner(three), "times/d.plain times/a.counting");
  EXPECT_EQ(runner(three), "times/a.counting");
  EXPECT_EQ(own.created, 1);
}

TEST_F(TruthOfInstances, without_an_object_from_create_another_implementation_runs) {
  own.create_nothing = true;
  EXPECT_EQ(runner(op.instance({{"by", 3}}).value()), "times/b.plain");
  own.create_nothing = false;
  own.create_outcome = OPMUX_RESOURCE;
  const Instance three = op.instance({{"by", 3}}).value();
  EXPECT_EQ(runner(three), "times/b.plain");
  own.create_outcome = OPMUX_OK;
  EXPECT_EQ(own.destroyed, 0);

  Options options = bare();
  options.max_packed_bytes = 23;
  Stage small(std::move(options));
  const Operator times = small.define(kTimes);
  const Registration registered =
      small.runtime
          .implement(
              {.id = own.id, .kind = Kind::default_, .priority = 200, .kernel = own.functions()})
          .value();
  small.add({.id = "times/b.plain", .kind = Kind::default_});
  const Instance too_large = times.instance({}).value();
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(too_large(y, x).ok()); }), "times/b.plain");
  EXPECT_GE(own.destroyed, 1);
  EXPECT_EQ(small.runtime.packed_bytes(), 0u);
}

TEST_F(TruthOfInstances, load_gets_the_tensors_that_were_named) {
  Instance with_table = op.instance({{"table", table}}).value();
  EXPECT_THAT(with_table.arguments(), ElementsAre("y", "x"));
  EXPECT_EQ(runner(with_table), "times/a.counting");
  EXPECT_EQ(out[1], 7);
  more[0] = 8;
  EXPECT_EQ(runner(with_table), "times/a.counting");
  EXPECT_EQ(out[1], 7);
  with_table.reset();
  EXPECT_EQ(own.destroyed, 1);
  EXPECT_EQ(runner(with_table), "times/a.counting");
  EXPECT_EQ(out[1], 8);
  EXPECT_EQ(out[0], 2) << "a new state";
  EXPECT_EQ(own.loads, 2);
  EXPECT_EQ(own.created, 2);
}

TEST_F(TruthOfInstances, what_it_describes_is_counted_listed_and_explained) {
  const Instance three = op.instance({{"by", 3}}).value();
  EXPECT_TRUE(three.states().empty());
  EXPECT_EQ(runner(three), "times/a.counting");
  ASSERT_EQ(three.states().size(), 1u);
  const InstanceState state = three.states()[0];
  EXPECT_EQ(state.implementation, "times/a.counting");
  EXPECT_EQ(state.bytes, 24u);
  EXPECT_THAT(state.attributes, ElementsAre(Pair("packed_bytes", "24"), Pair("by", "3")));
  EXPECT_THAT(to_json(three.states()), HasSubstr("\"attributes\":{\"packed_bytes\":\"24\""));
  EXPECT_EQ(stage.stats("times/a.counting").packed_bytes, 24u);
  EXPECT_EQ(stage.runtime.packed_bytes(), 24u);
  EXPECT_THAT(candidate(three.explain(y, x), "times/a.counting").reason,
              HasSubstr("; instance: packed_bytes 24, by 3"));
  EXPECT_THAT(to_json(stage.runtime.list()), HasSubstr("\"by\":\"3\""));
}

/// Lets a kernel wait inside a call until the test goes on.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, open = false;

  void pass() {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  }
  void await_call() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  void release() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

TEST_F(TruthOfInstances, a_withdrawn_implementation_destroys_its_object_once_after_the_last_call) {
  const Instance three = op.instance({{"by", 3}}).value();
  Gate gate;
  std::atomic<int> destroyed_inside{-1};
  std::atomic<bool> waited{false};
  std::thread caller([&] {
    ASSERT_EQ(runner(three), "times/a.counting");  // caches the plan
    own.body = [&](Counting::State&) {
      if (waited.exchange(true)) return OPMUX_OK;
      gate.pass();
      destroyed_inside = own.destroyed.load();
      return OPMUX_OK;
    };
    EXPECT_EQ(runner(three), "times/a.counting");
  });
  gate.await_call();
  std::thread withdrawer([&] { EXPECT_TRUE(held.withdraw().ok()); });
  // Until the withdrawal is published, calls still run it.
  while (runner(three) == "times/a.counting") std::this_thread::yield();
  EXPECT_EQ(own.destroyed, 0);
  EXPECT_EQ(runner(three), "times/b.plain");
  gate.release();
  caller.join();
  withdrawer.join();
  EXPECT_EQ(destroyed_inside, 0);
  EXPECT_EQ(own.destroyed, 1);
  EXPECT_EQ(own.created, 1);
  EXPECT_TRUE(three.states().empty());
}

TEST_F(TruthOfInstances, a_reset_while_a_call_runs_destroys_the_object_after_it) {
  Instance three = op.instance({{"by", 3}}).value();
  Gate gate;
  std::thread caller([&] {
    ASSERT_EQ(runner(three), "times/a.counting");
    own.body = [&](Counting::State&) {
      gate.pass();
      return OPMUX_OK;
    };
    EXPECT_EQ(runner(three), "times/a.counting");
    EXPECT_EQ(out[0], 6);
  });
  gate.await_call();
  three.reset();
  EXPECT_EQ(own.destroyed, 0);
  EXPECT_TRUE(three.states().empty());
  gate.release();
  caller.join();
  EXPECT_EQ(runner(three), "times/a.counting");
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(stage.runtime.packed_bytes(), 24u);
  EXPECT_EQ(own.destroyed, 1);
  EXPECT_EQ(own.created, 2);
}

TEST_F(TruthOfInstances, threads_that_start_together_share_one_object) {
  const Instance three = op.instance({{"by", 3}}).value();
  std::mutex mutex;
  own.body = [&](Counting::State&) { return OPMUX_OK; };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      float mine[4];
      for (int call = 0; call < 50; ++call) {
        const std::lock_guard lock(mutex);  // the state of this kernel is not guarded
        EXPECT_TRUE(three(TensorView(mine, f32, {4}), x).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runner(three), "times/a.counting");
  EXPECT_EQ(out[0], 3 * 201);
  EXPECT_EQ(own.created, 1);
}

TEST_F(TruthOfInstances, arguments_that_cannot_be_fixed_are_refused) {
  const auto reason = [&](std::initializer_list<NamedArgument> fixed) {
    const auto made = op.instance(fixed);
    return made ? std::string("made") : std::string(made.error().reason());
  };
  EXPECT_EQ(reason({{"bye", 3}}), "schema.unknown_argument");
  EXPECT_EQ(reason({{"by", 3}, {"by", 4}}), "instance.argument");
  EXPECT_EQ(reason({{"y", y}}), "instance.argument");
  EXPECT_EQ(reason({{"by", 1.5}}), "schema.argument_type");
  EXPECT_EQ(reason({{"by", table}}), "schema.argument_type");
  EXPECT_EQ(reason({{"table", TensorView(static_cast<float*>(nullptr), f32, {4})}}),
            "schema.null_data");
  EXPECT_EQ(reason({{"table", none}}), "made");
  const Instance two = op.instance({}).value();
  EXPECT_THAT(two.arguments(), ElementsAre("y", "x", "table"));
  EXPECT_EQ(two(y, x, table, 3).reason(), "schema.argument_count");
  EXPECT_EQ(two(y).reason(), "schema.argument_missing");
  const Operator scale = stage.define("scale(out Tensor y[N], Tensor x[N], const Tensor w[N])");
  EXPECT_EQ(scale.instance({}).error().reason(), "instance.parameter");
}

TEST_F(TruthOfInstances, a_required_scalar_that_is_not_named_is_passed_with_each_call) {
  struct Step {
    int created = 0;
    static int32_t create(void* self, const opmux_arg* options, uint32_t, void** instance,
                          opmux_error*) {
      ++static_cast<Step*>(self)->created;
      EXPECT_EQ(options[2].tag, OPMUX_ARG_NONE);
      EXPECT_EQ(options[3].value.i64, 9);
      *instance = self;
      return OPMUX_OK;
    }
    static int32_t run(void* self, const opmux_call* call) {
      EXPECT_EQ(call->instance, self);
      *static_cast<float*>(call->args[0].value.tensor->data) =
          static_cast<float>(call->args[2].value.i64);
      return OPMUX_OK;
    }
  } step;
  const Operator move =
      stage.define("move(out Tensor y[N], Tensor x[N], int position, int width = 9)");
  const Registration registered = stage.runtime
                                      .implement({.id = "move/a.step",
                                                  .kind = Kind::default_,
                                                  .kernel = {.user_data = &step,
                                                             .run = Step::run,
                                                             .create = Step::create,
                                                             .destroy = [](void*, void*) {}}})
                                      .value();
  const Instance own_move = move.instance({}).value();
  EXPECT_THAT(own_move.arguments(), ElementsAre("y", "x", "position"));
  for (int position = 0; position < 20; ++position) {
    ASSERT_TRUE(own_move(y, x, position).ok());
    EXPECT_EQ(out[0], static_cast<float>(position));
  }
  EXPECT_EQ(step.created, 1);
  EXPECT_EQ(own_move.states().at(0).bytes, 0u);
}

TEST_F(TruthOfInstances, an_implementation_that_packs_gets_the_const_tensors_of_the_instance) {
  struct Packer {
    int created = 0, loads = 0, with = 0, without = 0;
    static Packer& of(void* self) { return *static_cast<Packer*>(self); }
    static int32_t run(void* self, const opmux_call* call) {
      ++(call->instance != nullptr ? of(self).with : of(self).without);
      return OPMUX_OK;
    }
  } packer;
  const Operator scale = stage.define("scale(out Tensor y[N], Tensor x[N], const Tensor w[N])");
  const Registration registered =
      stage.runtime
          .implement({.id = "scale/a.pack",
                      .kind = Kind::default_,
                      .kernel = {.user_data = &packer,
                                 .run = Packer::run,
                                 .create = [](void* self, const opmux_arg*, uint32_t,
                                              void** instance, opmux_error*) -> int32_t {
                                   ++Packer::of(self).created;
                                   *instance = self;
                                   return OPMUX_OK;
                                 },
                                 .load = [](void* self, void*, const opmux_arg* params, uint32_t,
                                            opmux_error*) -> int32_t {
                                   ++Packer::of(self).loads;
                                   EXPECT_EQ(params[2].tag, OPMUX_ARG_TENSOR);
                                   return OPMUX_OK;
                                 },
                                 .destroy = [](void*, void*) {}}})
          .value();
  const Instance layer = scale.instance({{"w", table}}).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(layer(y, x).ok());
  ASSERT_TRUE(scale(y, x, table).ok()) << "works without an instance, as before";
  EXPECT_EQ(packer.with, 3);
  EXPECT_EQ(packer.without, 1);
  EXPECT_EQ(packer.created, 1);
  EXPECT_EQ(packer.loads, 1);
  EXPECT_EQ(layer.states().at(0).bytes, 16u);
}

TEST_F(TruthOfInstances, rules_know_whether_a_call_goes_through_an_instance) {
  const Instance three = op.instance({{"by", 3}}).value();
  ASSERT_EQ(runner(three), "times/a.counting");
  Policy policy;
  policy.rules.push_back(
      {.op = "times", .when = Condition::ambient("instance"), .deny = {"times/a.counting"}});
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  EXPECT_EQ(runner(three), "times/b.plain");
  EXPECT_EQ(candidate(op.explain(y, x), "times/a.counting").code, "caps.instance");
  EXPECT_EQ(candidate(three.explain(y, x), "times/a.counting").code, "policy.denied");
}

TEST_F(TruthOfInstances, a_kernel_may_call_an_instance) {
  const Instance three = op.instance({{"by", 3}}).value();
  const Operator outer = stage.define("outer(out Tensor y[N], Tensor x[N])");
  stage.add({.id = "outer/a.x", .kind = Kind::default_, .run = [&](CallFrame&) {
               return three(y, x).ok() ? Outcome::ok : Outcome::failed;
             }});
  for (int call = 1; call <= 3; ++call) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(outer(y, x).ok()); }), "outer/a.x times/a.counting");
    EXPECT_EQ(out[0], static_cast<float>(3 * call));
  }
  EXPECT_EQ(own.created, 1);
}

}  // namespace
}  // namespace opmux::test
