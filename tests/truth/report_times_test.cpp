#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "stage.hpp"

/// The times in a call report: choosing, transforms and implementations apart.
namespace opmux::test {
namespace {

TEST(TruthOfReportTimes, transforms_are_not_part_of_the_time_inside_implementations) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_, .caps = Caps{}.contiguous()});
  ASSERT_TRUE(stage.runtime.policy().set({.transforms = {"contiguous"}}).ok());
  constexpr int64_t kSize = 1024;
  std::vector<float> in(kSize * kSize), out(kSize * kSize);
  const TensorView y(out.data(), f32, {kSize, kSize});
  const std::array<int64_t, 2> shape{kSize, kSize}, columns{1, kSize};
  const TensorView x(in.data(), f32, shape, columns, {});
  CallReport report;
  ASSERT_TRUE(op.with(report)(y, x).ok());
  EXPECT_EQ(report.implementation, "copy/fast.one");
  EXPECT_EQ(report.transforms, "contiguous(x)");
  EXPECT_GT(report.transform_ns, report.run_ns) << "a million elements were copied, none computed";
  EXPECT_GT(report.run_ns, 0u);
  EXPECT_GT(report.select_ns, 0u);
  ASSERT_TRUE(op.with(report)(y, y).ok());
  EXPECT_EQ(report.transform_ns, 0u);
}

}  // namespace
}  // namespace opmux::test
