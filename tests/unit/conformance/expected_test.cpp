#include "conformance/expected.hpp"

#include <cmath>

#include "conformance/element.hpp"
#include "conformance/layout.hpp"
#include "conformance/shaper.hpp"

namespace opmux::conformance {
namespace {

/// One output of four elements with the expected values 1, 100, NaN and 0.
class ConformanceJudge : public testing::Test {
 protected:
  std::optional<Problem> judge_values(DType dtype, const std::vector<double>& got, double bound) {
    info_.name = "y";
    info_.type = ArgTag::tensor;
    info_.output = true;
    Case c;
    CaseArgument& y = c.arguments.emplace_back();
    y.info = &info_;
    y.present = true;
    y.tensor.dtype = dtype;
    y.tensor.shape = {2, 2};
    y.tensor.values = got;
    y.tensor.pack();
    Expected expected;
    expected.outputs.push_back({0, {1, 100, std::nan(""), 0}, std::vector<double>(4, bound)});
    return judge(c, expected, {y.tensor.packed});
  }
  ArgumentInfo info_;
  const double nan_ = std::nan("");
};

TEST_F(ConformanceJudge, accepts_what_rounds_to_the_same) {
  EXPECT_FALSE(judge_values(f32, {1, 100, nan_, -0.0}, 0));
  EXPECT_FALSE(judge_values(bf16, {1.001, 100.1, nan_, 0}, 0));
}

TEST_F(ConformanceJudge, accepts_a_neighbour_only_if_the_bound_reaches_over_the_tie) {
  const double next = 1 + 0x1p-7;
  EXPECT_TRUE(judge_values(bf16, {next, 100, nan_, 0}, 0x1p-9));
  EXPECT_FALSE(judge_values(bf16, {next, 100, nan_, 0}, 0x1.1p-8));
  EXPECT_TRUE(judge_values(f32, {1.01, 100, nan_, 0}, 0x1.1p-8));
}

TEST_F(ConformanceJudge, names_the_element_and_both_values) {
  const auto problem = judge_values(f32, {1, 101, nan_, 0}, 0.5);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->kind, "value");
  EXPECT_EQ(
      problem->detail,
      "y[0,1] is 101, expected 100 (the reference has 100 +- 0.5, in f32 from 99.5 to 100.5)");
}

TEST_F(ConformanceJudge, tells_nan_from_numbers) {
  EXPECT_TRUE(judge_values(f16, {1, 100, 0, 0}, 1));
  EXPECT_TRUE(judge_values(f16, {1, 100, nan_, nan_}, 1));
  EXPECT_TRUE(judge_values(f16, {nan_, 100, nan_, 0}, 1));
}

TEST(ConformanceBound, of_a_sum_grows_with_the_root_of_its_length) {
  EXPECT_DOUBLE_EQ(sum_error(4), 4 * 0x1p-24);
  EXPECT_DOUBLE_EQ(sum_error(10000), 400 * 0x1p-24);
}

}  // namespace
}  // namespace opmux::conformance
