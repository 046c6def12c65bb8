#include "stage.hpp"

namespace opmux::test {
namespace {

int32_t create_nothing(void*, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
  *instance = nullptr;
  return OPMUX_OK;
}

KernelFunctions packing() {
  return {.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; },
          .create = create_nothing,
          .destroy = [](void*, void*) {}};
}

TEST(Truth, create_for_an_operator_without_a_constant_registers_and_waits_for_an_instance) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  const auto made =
      stage.runtime.implement({.id = "copy/a.x", .kind = Kind::default_, .kernel = packing()});
  ASSERT_TRUE(made);
  Rows t;
  EXPECT_EQ(candidate(op.explain(t.y, t.x), "copy/a.x").code, "caps.instance");
  EXPECT_EQ(op(t.y, t.x).code(), Code::no_candidate);
}

TEST(Truth, create_for_a_constant_that_is_newer_than_the_implementation_waits_for_an_instance) {
  Stage stage;
  const Operator op =
      stage.define("scale(out Tensor y[H], Tensor x[H], const Tensor? w[H] = none)");
  Implementation what{.id = "scale/a.x", .kind = Kind::default_, .kernel = packing()};
  what.signature = "scale(out Tensor y[H], Tensor x[H])";
  float y[4], x[4] = {};
  const TensorView out(y, f32, {4}), in(x, f32, {4});
  {
    const Registration older = stage.runtime.implement(what).value();
    EXPECT_EQ(candidate(op.explain(out, in), "scale/a.x").code, "caps.instance");
  }
  what.signature.clear();
  const Registration newer = stage.runtime.implement(what).value();
  EXPECT_EQ(op.explain(out, in).chosen, "scale/a.x");
}

TEST(Truth, functions_of_an_instance_without_create_are_refused) {
  Stage stage;
  stage.define("scale(out Tensor y[H], Tensor x[H], const Tensor w[H])");
  KernelFunctions kernel = packing();
  kernel.create = nullptr;
  const auto refused =
      stage.runtime.implement({.id = "scale/a.x", .kind = Kind::default_, .kernel = kernel});
  EXPECT_EQ(refused.error().reason(), "registry.create");
}

}  // namespace
}  // namespace opmux::test
