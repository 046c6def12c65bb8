#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.hpp>
#include <opmux/typed.hpp>

/// Complete calls of plugins built against older, current and newer headers.
namespace opmux {
namespace {

class AbiSkewCall : public testing::TestWithParam<const char*> {
 protected:
  Status call(int64_t size, int mode = 0) {
    const TensorView in(x_, f32, {size}), out(y_, f32, {size});
    return runtime_.op(name_ + ".scale").value().with(report_)(out, in, 3.0, mode);
  }

  const std::string name_ = std::string("skew_") + GetParam();
  Runtime runtime_ = Runtime::create({.environment = {{{"OPMUX_PLUGIN_PATH", OPMUX_SKEW_PLUGINS}}},
                                      .backends = false})
                         .value();
  float x_[4] = {1, 2, 3, 4}, y_[4] = {};
  CallReport report_;
};

TEST_P(AbiSkewCall, runs_with_plan_workspace_and_arguments) {
  ASSERT_TRUE(call(4).ok());
  EXPECT_EQ(report_.implementation, name_ + ".scale/" + name_ + "_one.a");
  EXPECT_THAT(y_, testing::ElementsAre(3, 6, 9, 12));
}

TEST_P(AbiSkewCall, enforces_every_capability_rule) {
  EXPECT_THAT(call(3).message(), testing::HasSubstr("caps.multiple_of"));
  EXPECT_THAT(call(0 + 1).message(), testing::HasSubstr("caps.at_least"));
  EXPECT_THAT(call(2, 7).message(), testing::HasSubstr("caps.scalar"));
}

TEST_P(AbiSkewCall, its_verifier_reads_the_facts_that_it_listed) {
  EXPECT_THAT(call(2, 3).message(), testing::HasSubstr("skew.mode"));
}

TEST_P(AbiSkewCall, the_implementation_of_the_second_backend_can_be_required) {
  const std::string id = name_ + ".scale/" + name_ + "_two.c";
  const PolicyScope scope(runtime_, {.require = {"impl:" + id}});
  ASSERT_TRUE(call(2).ok());
  EXPECT_EQ(report_.implementation, id);
}

INSTANTIATE_TEST_SUITE_P(, AbiSkewCall, testing::Values("v1", "today", "next"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace opmux
