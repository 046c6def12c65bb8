#include <array>
#include <string>
#include <vector>

#include <opmux/opmux.h>

#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr const char* kMix = "mix(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H])";

/// Calls of an operator whose kernel must never see a null pointer or a second device.
struct NullData : testing::Test {
  /// Expects that a call is refused with this reason and that no kernel ran.
  template <class Call>
  void expect_refused(Call&& call, const std::string& reason) {
    Status status;
    EXPECT_EQ(ran_by([&] { status = call(); }), "");
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_EQ(status.reason(), reason);
  }
  /// Calls until a plan with layout numbers exists.
  void warm_up() {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x, t.w).ok()); }), "mix/plain.one");
    }
    EXPECT_NE(t.x.layout(), 0u);
  }

  Stage stage;
  Operator op = stage.define(kMix);
  RecordingKernel& kernel = stage.add({.id = "mix/plain.one", .kind = Kind::default_});
  Rows t;
  const TensorView nowhere{static_cast<void*>(nullptr), f32, {2, 8}};
};

TEST_F(NullData, is_refused_by_the_first_call) {
  expect_refused([&] { return op(t.y, nowhere, t.w); }, "schema.null_data");
  expect_refused([&] { return op(nowhere, t.x, t.w); }, "schema.null_data");
}

TEST_F(NullData, is_refused_by_warm_calls) {
  warm_up();
  for (int i = 0; i < 3; ++i) {
    expect_refused([&] { return op(t.y, nowhere, t.w); }, "schema.null_data");
    expect_refused([&] { return op(nowhere, t.x, t.w); }, "schema.null_data");
    expect_refused([&] { return op.with({.max_threads = 1})(t.y, nowhere, t.w); },
                   "schema.null_data");
  }
  EXPECT_EQ(nowhere.layout(), 0u);
  warm_up();
}

TEST_F(NullData, is_refused_in_a_view_that_had_data) {
  warm_up();
  for (int i = 0; i < 3; ++i) {
    t.x.set_data(nullptr);
    expect_refused([&] { return op(t.y, t.x, t.w); }, "schema.null_data");
    t.x.set_data(t.in);
    warm_up();
  }
}

TEST_F(NullData, is_refused_in_copies_of_a_view_and_in_other_shapes) {
  warm_up();
  TensorView copy = t.x;
  copy.set_data(nullptr);
  const TensorView again = copy;
  expect_refused([&] { return op(t.y, again, t.w); }, "schema.null_data");
  const Rows other(3, 8);
  const TensorView lost(static_cast<void*>(nullptr), f32, {3, 8});
  expect_refused([&] { return op(other.y, lost, t.w); }, "schema.null_data");
}

TEST_F(NullData, is_refused_by_calls_with_arguments_of_the_c_form) {
  for (int i = 0; i < 3; ++i) {
    for (const TensorView& x : {t.x, nowhere}) {
      const std::array<opmux_arg, 2> args{opmux_arg_tensor(&t.y.c()), opmux_arg_tensor(&x.c())};
      if (x.data() != nullptr) {
        EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op.call_arguments(args).ok()); }), "mix/plain.one");
      } else {
        expect_refused([&] { return op.call_arguments(args); }, "schema.null_data");
      }
    }
  }
}

TEST_F(NullData, is_refused_in_a_call_inside_a_call) {
  const Operator outer = stage.define(kCopy);
  Status inner;
  stage.add({.id = "copy/plain.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               (void)op(t.y, t.x, t.w);
               inner = op(t.y, nowhere, t.w);
               return Outcome::ok;
             }});
  warm_up();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(outer(t.y, t.x).ok()); }), "copy/plain.one mix/plain.one");
    EXPECT_EQ(inner.reason(), "schema.null_data");
  }
}

TEST_F(NullData, is_refused_by_a_bound_plan_which_may_be_bound_without_data) {
  Plan plan = op.bind(nowhere, nowhere, t.w).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(t.y, t.x, t.w).ok()); }), "mix/plain.one");
    expect_refused([&] { return plan(t.y, nowhere, t.w); }, "schema.null_data");
    expect_refused([&] { return plan.prepare(nowhere, t.x, t.w); }, "schema.null_data");
  }
}

TEST_F(NullData, is_accepted_in_tensors_without_elements_and_in_explanations) {
  const Operator join = stage.define("join(out Tensor y[N], Tensor x[N], Tensor more[M])");
  stage.add({.id = "join/plain.one", .kind = Kind::default_});
  const TensorView y(t.out, f32, {4}), x(t.in, f32, {4}),
      empty(static_cast<void*>(nullptr), f32, {0});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(join(y, x, empty).ok()); }), "join/plain.one");
  }
  EXPECT_EQ(op.explain(nowhere, nowhere).chosen, "mix/plain.one");
}

TEST_F(NullData, a_second_device_is_refused_by_cold_and_warm_calls) {
  const TensorView cuda(t.in, f32, {2, 8}, Device{OPMUX_DEVICE_CUDA, 0}),
      second(t.in, f32, {2, 8}, Device{OPMUX_DEVICE_CPU, 1});
  for (int i = 0; i < 2; ++i) {
    for (const TensorView& x : {cuda, second}) {
      expect_refused([&] { return op(t.y, x, t.w); }, "schema.device_mismatch");
      expect_refused([&] { return op(x, t.x, t.w); }, "schema.device_mismatch");
    }
    EXPECT_EQ(op.bind(t.y, cuda, t.w).error().reason(), "schema.device_mismatch");
    warm_up();
  }
}

TEST_F(NullData, an_operator_for_several_devices_runs) {
  const Operator move = stage.define("move(out Tensor y[N], Tensor x[N])");
  const Operator fetch = [&] {
    EXPECT_TRUE(stage.runtime.define("#! mixed_devices\nfetch(out Tensor y[N], Tensor x[N])").ok());
    return stage.runtime.op("fetch").value();
  }();
  stage.add({.id = "move/plain.one", .kind = Kind::default_});
  stage.add({.id = "fetch/plain.one", .kind = Kind::default_});
  const TensorView y(t.out, f32, {4}), x(t.in, f32, {4}, Device{OPMUX_DEVICE_CUDA, 0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(fetch(y, x).ok()); }), "fetch/plain.one");
    expect_refused([&] { return move(y, x); }, "schema.device_mismatch");
  }
}

}  // namespace
}  // namespace opmux::test
