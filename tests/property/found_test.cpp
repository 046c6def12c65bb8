#include <gtest/gtest.h>

#include <opmux/opmux.hpp>

/// Defects found by the random search, each as one small call.
namespace opmux {
namespace {

using namespace std::string_literals;

class Found : public testing::Test {
 protected:
  void add(const std::string& variant, Caps caps, int priority, const std::string& signature = "") {
    Implementation implementation{
        .id = "op/acme." + variant, .kind = Kind::vendor, .vendor = "acme", .priority = priority};
    implementation.caps = std::move(caps);
    implementation.signature = signature;
    implementation.run = [this, variant](CallFrame&) {
      ran_ = variant;
      return Outcome::ok;
    };
    runtime_.implement(implementation).value().keep();
  }

  Operator define(const std::string& schema) {
    EXPECT_TRUE(runtime_.define(schema).ok());
    return runtime_.op("op").value();
  }

  template <class... Args>
  std::string who_runs(const Operator& op, const Args&... args) {
    ran_ = "nothing";
    const Status status = op(args...);
    return status.ok() ? ran_ : std::string(status.reason());
  }

  static TensorView tensor(std::initializer_list<int64_t> shape, DType dtype = f32) {
    static char data[1 << 20];
    return {data, dtype, shape};
  }

  Runtime runtime_ = Runtime::create({.environment = {{}}, .backends = false}).value();
  std::string ran_;
};

TEST_F(Found, an_absent_dimension_is_not_of_the_class_of_one_that_fails) {
  const Operator op = define("op(out Tensor y[N], Tensor? w[M])");
  add("thirds", Caps().multiple_of("M", 3), 200);
  add("any", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}), none), "thirds");
  EXPECT_EQ(who_runs(op, tensor({4}), tensor({128})), "any");
}

TEST_F(Found, a_string_added_later_is_part_of_the_class) {
  const Operator op = define("op(out Tensor y[N], str mode = \"x\")");
  add("older", {}, 200, "op(out Tensor y[N])");
  add("newer", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}), "x"s), "older");
  EXPECT_EQ(who_runs(op, tensor({4}), "y"s), "newer");
  EXPECT_EQ(who_runs(op, tensor({4})), "older");
}

TEST_F(Found, a_list_added_later_is_part_of_the_class) {
  const Operator op = define("op(out Tensor y[N], int[] axes = [1, 0])");
  add("older", {}, 200, "op(out Tensor y[N])");
  add("newer", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}), std::vector<int64_t>{1, 1}), "newer");
  EXPECT_EQ(who_runs(op, tensor({4}), std::vector<int64_t>{1, 0}), "older");
}

TEST_F(Found, element_types_with_codes_above_fifteen_are_separate_classes) {
  const Operator op = define("op(out Tensor y[N])");
  const DType u4{OPMUX_DTYPE_UINT, 4}, f4{17, 4};
  add("narrow", Caps().dtypes({u4}), 200);
  add("any", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}, u4)), "narrow");
  EXPECT_EQ(who_runs(op, tensor({4}, f4)), "any");
}

TEST_F(Found, dimensions_are_looked_for_in_the_optional_tensor_that_is_given) {
  const Operator op = define("op(out Tensor y[N], Tensor? a[N], Tensor? b[M])");
  add("any", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}), tensor({4}), none), "any");
  EXPECT_EQ(who_runs(op, tensor({4}), none, tensor({6})), "any");
  EXPECT_EQ(who_runs(op, tensor({4}), none, tensor({8})), "any");
  EXPECT_EQ(who_runs(op, tensor({8}), none, tensor({6})), "any");
}

TEST_F(Found, a_mismatch_in_the_other_optional_tensor_is_caught_on_a_warm_call) {
  const Operator op = define("op(out Tensor y[N], Tensor? a[N], Tensor? b[M], Tensor c[M])");
  add("any", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}), tensor({4}), none, tensor({6})), "any");
  EXPECT_EQ(who_runs(op, tensor({4}), none, tensor({6}), tensor({6})), "any");
  EXPECT_EQ(who_runs(op, tensor({4}), none, tensor({7}), tensor({6})), "schema.dim_mismatch");
}

TEST_F(Found, a_size_in_bytes_that_overflows_is_caught_on_a_warm_call) {
  const Operator op = define("op(out Tensor y[N], Tensor x[M, K])");
  add("any", {}, 100);
  EXPECT_EQ(who_runs(op, tensor({4}), tensor({4, 4})), "any");
  EXPECT_EQ(who_runs(op, tensor({4}), tensor({int64_t{1} << 61, 1})), "schema.size_overflow");
  EXPECT_EQ(who_runs(op, tensor({4}), tensor({0, int64_t{1} << 62})), "schema.size_overflow");
}

TEST_F(Found, explain_leaves_an_optional_output_out_as_a_call_does) {
  const Operator op = define("op(out Tensor y[N], out Tensor? z[N], Tensor x[N])");
  add("both", Caps().present("z"), 200);
  add("one", Caps().absent("z"), 100);
  EXPECT_EQ(op.explain(tensor({4}), none, tensor({4})).chosen, "op/acme.one");
  EXPECT_EQ(op.explain(none, none, tensor({4})).chosen, "op/acme.one");
  EXPECT_EQ(who_runs(op, tensor({4}), none, tensor({4})), "one");
}

TEST_F(Found, a_bound_plan_heeds_a_condition_that_came_after_it) {
  const Operator op = define("op(out Tensor y[N])");
  add("fast", {}, 200);
  add("any", {}, 100);
  Plan plan = op.bind(tensor({4})).value();
  EXPECT_TRUE(plan(tensor({8})).ok());
  Policy policy;
  policy.rules = {{.op = "op",
                   .when = Condition::dim("N", Compare::greater, 100),
                   .deny = {"impl:op/acme.fast"}}};
  ASSERT_TRUE(runtime_.policy().set(policy).ok());
  EXPECT_EQ(plan.state(), Plan::State::current);
  ran_ = "nothing";
  EXPECT_EQ(plan(tensor({200})).code(), Code::outside_plan);
  EXPECT_EQ(ran_, "nothing");
  EXPECT_TRUE(plan(tensor({4})).ok());
  EXPECT_EQ(ran_, "fast");
}

}  // namespace
}  // namespace opmux
