#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

int32_t create_nothing(void*, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
  *instance = nullptr;
  return OPMUX_OK;
}

KernelFunctions packing() {
  return {.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; },
          .create = create_nothing,
          .destroy = [](void*, void*) {}};
}

TEST(Truth, create_for_an_operator_without_a_constant_is_refused) {
  Stage stage;
  stage.define(kCopy);
  const auto refused =
      stage.runtime.implement({.id = "copy/a.x", .kind = Kind::default_, .kernel = packing()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "registry.create");
  EXPECT_THAT(std::string(refused.error().message()), HasSubstr("create would never be called"));
}

TEST(Truth, create_for_a_constant_that_is_newer_than_the_implementation_is_refused) {
  Stage stage;
  stage.define("scale(out Tensor y[H], Tensor x[H], const Tensor? w[H] = none)");
  Implementation what{.id = "scale/a.x", .kind = Kind::default_, .kernel = packing()};
  what.signature = "scale(out Tensor y[H], Tensor x[H])";
  EXPECT_EQ(stage.runtime.implement(what).error().reason(), "registry.create");
  what.signature.clear();
  EXPECT_TRUE(stage.runtime.implement(what));
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
