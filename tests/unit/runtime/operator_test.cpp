#include <opmux/operator.hpp>

#include <latch>

#include <gtest/gtest.h>

#include <opmux/opmux.h>
#include <opmux/runtime.hpp>

namespace opmux {
namespace {

Runtime plain_runtime() {
  return Runtime::create({.environment = {{}}, .backends = false}).value();
}

TEST(Operator, describes_its_arguments) {
  Runtime runtime = plain_runtime();
  ASSERT_TRUE(
      runtime.define("f(out Tensor y[N], Tensor x[N], enum{p, q} e = q, int? n, str s = \"\")")
          .ok());
  const std::vector<ArgumentInfo> arguments = runtime.op("f")->arguments();
  ASSERT_EQ(arguments.size(), 5u);
  EXPECT_EQ(arguments[0].name, "y");
  EXPECT_TRUE(arguments[0].output);
  EXPECT_EQ(arguments[1].type, ArgTag::tensor);
  EXPECT_FALSE(arguments[1].output || arguments[1].optional);
  EXPECT_EQ(arguments[2].type, ArgTag::enumeration);
  EXPECT_EQ(arguments[2].words, (std::vector<std::string>{"p", "q"}));
  EXPECT_TRUE(arguments[2].optional && arguments[3].optional);
  EXPECT_EQ(arguments[4].type, ArgTag::string);
}

TEST(Operator, says_what_its_tensors_look_like) {
  Runtime runtime = plain_runtime();
  ASSERT_TRUE(runtime
                  .define("f(out(x) Tensor(E) y[..., H, 4], inout Tensor z[*], "
                          "Tensor(E) x[..., H, 4])")
                  .ok());
  const std::vector<ArgumentInfo> arguments = runtime.op("f")->arguments();
  EXPECT_EQ(arguments[0].dims, (std::vector<std::string>{"...", "H", "4"}));
  EXPECT_EQ(arguments[0].may_alias, "x");
  EXPECT_EQ(arguments[0].dtype_variable, "E");
  EXPECT_TRUE(arguments[1].updated && arguments[1].any_shape && !arguments[1].output);
  EXPECT_TRUE(arguments[1].dims.empty() && arguments[1].dtype_variable.empty());
}

TEST(Operator, tells_defaults_and_what_may_be_packed) {
  Runtime runtime = plain_runtime();
  ASSERT_TRUE(runtime
                  .define("f(out Tensor y[N], const Tensor w[N], float a = 1e-6, bool b = true, "
                          "enum{p, q} e = q, int? n)")
                  .ok());
  const std::vector<ArgumentInfo> arguments = runtime.op("f")->arguments();
  EXPECT_TRUE(arguments[1].constant && !arguments[0].constant);
  EXPECT_EQ(arguments[2].default_text, "1e-06");
  EXPECT_EQ(arguments[3].default_text, "true");
  EXPECT_EQ(arguments[4].default_text, "q");
  EXPECT_EQ(arguments[5].default_text, "");
}

TEST(Operator, infers_the_outputs_of_a_call) {
  Runtime runtime = plain_runtime();
  const Operator op = runtime.op("silu_and_mul").value();
  float data[12] = {};
  const TensorView x(data, f32, {2, 6});
  opmux_arg args[2] = {};
  args[1].tag = OPMUX_ARG_TENSOR;
  args[1].value.tensor = &x.c();
  const std::vector<OutputInfo> outputs = op.infer_outputs(args).value();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].position, 0u);
  EXPECT_EQ(outputs[0].dtype, f32);
  EXPECT_EQ(outputs[0].device, Device());
  EXPECT_EQ(outputs[0].shape, (std::vector<int64_t>{2, 3}));
  const TensorView odd(data, f32, {2, 5});
  args[1].value.tensor = &odd.c();
  EXPECT_EQ(op.infer_outputs(args).error().code(), Code::invalid_argument);
}

TEST(Operator, infers_integer_outputs_of_standard_operators) {
  Runtime runtime = plain_runtime();
  float data[12] = {};
  const TensorView logits(data, f32, {2, 6});
  opmux_arg args[2] = {};
  args[1].tag = OPMUX_ARG_TENSOR;
  args[1].value.tensor = &logits.c();
  const std::vector<OutputInfo> outputs = runtime.op("sample")->infer_outputs(args).value();
  EXPECT_EQ(outputs[0].dtype, i64);
  EXPECT_EQ(outputs[0].shape, (std::vector<int64_t>{2}));
}

TEST(Operator, calls_with_arguments_known_at_run_time_and_lends_threads) {
  Runtime runtime = plain_runtime();
  ASSERT_TRUE(runtime.define("f(out Tensor y[N], float scale = 2)").ok());
  const auto run = [](CallFrame& call) {
    const opmux_call& c = call.c();
    auto* y = call.data<float>(0);
    *y = static_cast<float>(call.f64(1));
    if (c.max_threads == 3)
      c.parallel_for(c.pool, 4, y, [](void* at, int64_t i) {
        *static_cast<float*>(at) += static_cast<float>(i);
      });
    return Outcome::ok;
  };
  const Registration mine =
      runtime.implement({.id = "f/acme.v1", .vendor = "acme", .run = run}).value();
  const Operator op = runtime.op("f").value();
  float data[1] = {};
  const TensorView y(data, f32, {1});
  opmux_arg args[2] = {};
  args[0].tag = OPMUX_ARG_TENSOR;
  args[0].value.tensor = &y.c();
  CallReport report;
  ASSERT_TRUE(op.call_arguments(args, {}, &report).ok());
  EXPECT_EQ(data[0], 2);
  EXPECT_EQ(report.implementation, "f/acme.v1");
  CallOptions options;
  options.max_threads = 3;
  options.parallel_for = [](void*, int64_t count, void* context, void (*body)(void*, int64_t)) {
    for (int64_t i = 0; i < count; ++i) body(context, i);
  };
  ASSERT_TRUE(op.call_arguments(args, options).ok());
  EXPECT_EQ(data[0], 8);
  args[0].tag = 99;
  EXPECT_EQ(op.call_arguments(args, {}, &report).code(), Code::invalid_argument);
  EXPECT_EQ(report.outcome, Code::invalid_argument);
}

// An operator whose kernel records how many threads it may use and did use.
struct Threaded {
  explicit Threaded(const Options& options) : runtime(Runtime::create(options).value()) {
    EXPECT_TRUE(runtime.define("g(out Tensor y[N])").ok());
    const auto run = [this](CallFrame& call) {
      const opmux_call& c = call.c();
      allowed = c.max_threads;
      lent = c.parallel_for != nullptr;
      pool = c.pool;
      if (!lent) return Outcome::ok;
      const auto meet = [](void* latch, int64_t) {
        static_cast<std::latch*>(latch)->arrive_and_wait();
      };
      std::latch all(allowed);  // No piece ends before each has a thread.
      c.parallel_for(c.pool, allowed, &all, meet);
      return Outcome::ok;
    };
    mine = runtime.implement({.id = "g/acme.v1", .vendor = "acme", .run = run}).value();
  }
  static Options with(int threads, std::vector<std::pair<std::string, std::string>> environment) {
    return {.environment = std::move(environment), .backends = false, .threads = threads};
  }
  float data[1] = {};
  TensorView y{data, f32, {1}};
  int32_t allowed = 0;
  bool lent = false;
  void* pool = nullptr;
  Runtime runtime;
  Registration mine;
};

TEST(Operator, a_plain_call_and_a_plan_may_use_the_threads_of_the_runtime) {
  Threaded three(Threaded::with(3, {{"OPMUX_NUM_THREADS", "5"}}));
  const Operator op = three.runtime.op("g").value();
  for (int i = 0; i < 3; ++i) {  // The second call runs a cached plan.
    ASSERT_TRUE(op(three.y).ok());
    EXPECT_EQ(three.allowed, 3);
    EXPECT_TRUE(three.lent);
  }
  three.allowed = 0;
  Plan plan = op.bind(three.y).value();
  ASSERT_TRUE(plan(three.y).ok());
  EXPECT_EQ(three.allowed, 3);
  EXPECT_TRUE(three.lent);
  Threaded five(Threaded::with(0, {{"OPMUX_NUM_THREADS", "5"}}));
  ASSERT_TRUE(five.runtime.call("g", five.y).ok());
  EXPECT_EQ(five.allowed, 5);
}

TEST(Operator, a_call_limits_its_threads_or_provides_a_pool) {
  Threaded three(Threaded::with(3, {}));
  const Operator op = three.runtime.op("g").value();
  ASSERT_TRUE(op.with({.max_threads = 1})(three.y).ok());
  EXPECT_EQ(three.allowed, 1);
  EXPECT_FALSE(three.lent);
  ASSERT_TRUE(op.with({.max_threads = 2})(three.y).ok());
  EXPECT_EQ(three.allowed, 2);
  EXPECT_TRUE(three.lent);
  int own = 0;
  CallOptions options;
  options.pool = &own;
  options.parallel_for = [](void*, int64_t, void*, void (*)(void*, int64_t)) {};
  ASSERT_TRUE(op.with(options)(three.y).ok());
  EXPECT_EQ(three.allowed, 1);
  options.max_threads = 8;
  ASSERT_TRUE(op.with(options)(three.y).ok());
  EXPECT_EQ(three.allowed, 8);
  EXPECT_EQ(three.pool, &own);
}

TEST(Operator, a_runtime_of_one_thread_lends_none) {
  Threaded one(Threaded::with(1, {}));
  ASSERT_TRUE(one.runtime.call("g", one.y).ok());
  EXPECT_EQ(one.allowed, 1);
  EXPECT_FALSE(one.lent);
}

TEST(Operator, finds_arguments_by_name_and_suggests_the_nearest) {
  Runtime runtime = plain_runtime();
  const Operator op = runtime.op("rms_norm").value();
  EXPECT_EQ(op.position("weight").value(), 2u);
  const Status status = op.position("wieght").error();
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_EQ(status.message(), "rms_norm has no argument 'wieght'; did you mean 'weight'?");
}

TEST(Operator, explains_arguments_that_are_known_at_run_time) {
  Runtime runtime = plain_runtime();
  const Operator op = runtime.op("rms_norm").value();
  float data[6] = {};
  const TensorView x(data, f32, {2, 3});
  const opmux_arg arguments[] = {opmux_arg_none(), opmux_arg_tensor(&x.c()), opmux_arg_none(),
                                 opmux_arg_f64(0.5)};
  const Explanation found = op.explain_arguments(arguments);
  EXPECT_EQ(found.to_string(), op.explain(none, x, none, 0.5).to_string());
  EXPECT_EQ(found.arguments, "y=f32[2,3] x=f32[2,3] eps=0.5 round_before_weight=false");
  EXPECT_EQ(found.chosen, "rms_norm/reference.scalar");
}

TEST(Operator, explains_why_arguments_are_invalid) {
  Runtime runtime = plain_runtime();
  opmux_arg wrong = opmux_arg_none();
  wrong.tag = 99;
  const Explanation found = runtime.op("rms_norm")->explain_arguments({&wrong, 1});
  EXPECT_EQ(found.op, "rms_norm");
  EXPECT_TRUE(found.chosen.empty() && found.candidates.empty());
  EXPECT_NE(found.note.find("argument 1 with tag 99"), std::string::npos);
}

TEST(Operator, takes_none_for_an_optional_number_and_never_mixes_it_up_with_a_tensor) {
  Runtime runtime = plain_runtime();
  ASSERT_TRUE(runtime.define("f(out Tensor y[N], float? scale)").ok());
  double seen = -1;
  const Registration mine = runtime
                                .implement({.id = "f/acme.v1",
                                            .vendor = "acme",
                                            .run =
                                                [&](CallFrame& call) {
                                                  seen = call.has(1) ? call.f64(1) : 0;
                                                  return Outcome::ok;
                                                }})
                                .value();
  const Operator op = runtime.op("f").value();
  float data[4] = {};
  const TensorView y(data, f32, {4});
  for (int i = 0; i < 3; ++i) {
    seen = -1;
    ASSERT_TRUE(op(y, none).ok());
    EXPECT_EQ(seen, 0);
    EXPECT_EQ(op(y, y).code(), Code::invalid_argument);
    ASSERT_TRUE(op(y, 2.5).ok());
    EXPECT_EQ(seen, 2.5);
  }
}

}  // namespace
}  // namespace opmux
