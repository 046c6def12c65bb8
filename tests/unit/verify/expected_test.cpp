#include "verify/expected.hpp"

#include <cmath>

#include "verify/bounds.hpp"

namespace opmux::verify {
namespace {

std::vector<std::byte> packed(const std::vector<double>& values, DType dtype) {
  const auto size = static_cast<size_t>(dtype.size_bytes());
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i)
    write_element(&bytes[i * size], dtype, rounded(values[i], dtype));
  return bytes;
}

/// One output of four elements with the expected values 1, 100, NaN and 0.
class VerifyJudge : public testing::Test {
 protected:
  std::optional<Mismatch> judge_values(DType dtype, const std::vector<double>& got, double bound) {
    y_ = {dtype, {2, 2}, {}};
    call_.arguments = {{.name = "y", .present = true, .tensor = &y_, .written = true}};
    Expected expected;
    expected.outputs.push_back({0, {1, 100, std::nan(""), 0}, std::vector<double>(4, bound)});
    const std::vector<std::vector<std::byte>> outputs = {packed(got, dtype)};
    return judge(call_, expected, outputs);
  }
  Tensor y_;
  CallView call_{"any", {}};
  const double nan_ = std::nan("");
};

TEST_F(VerifyJudge, accepts_what_rounds_to_the_same) {
  EXPECT_FALSE(judge_values(f32, {1, 100, nan_, -0.0}, 0));
  EXPECT_FALSE(judge_values(bf16, {1.001, 100.1, nan_, 0}, 0));
}

TEST_F(VerifyJudge, accepts_a_neighbour_only_if_the_bound_reaches_over_the_tie) {
  const double next = 1 + 0x1p-7;
  EXPECT_TRUE(judge_values(bf16, {next, 100, nan_, 0}, 0x1p-9));
  EXPECT_FALSE(judge_values(bf16, {next, 100, nan_, 0}, 0x1.1p-8));
  EXPECT_TRUE(judge_values(f32, {1.01, 100, nan_, 0}, 0x1.1p-8));
}

TEST_F(VerifyJudge, names_the_element_and_both_values) {
  const auto mismatch = judge_values(f32, {1, 101, nan_, 0}, 0.5);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->element, 1u);
  EXPECT_EQ(mismatch->got, 101);
  EXPECT_EQ(mismatch->expected, 100);
  EXPECT_EQ(
      mismatch->describe(call_),
      "y[0,1] is 101, expected 100 (the reference has 100 +- 0.5, in f32 from 99.5 to 100.5)");
}

TEST_F(VerifyJudge, tells_nan_from_numbers) {
  EXPECT_TRUE(judge_values(f16, {1, 100, 0, 0}, 1));
  EXPECT_TRUE(judge_values(f16, {1, 100, nan_, nan_}, 1));
  EXPECT_TRUE(judge_values(f16, {nan_, 100, nan_, 0}, 1));
}

TEST(CallView, arguments_that_an_older_schema_lacks_are_absent) {
  CallView call{.op = "rms_norm", .arguments = {}};
  call.arguments.push_back({.name = "eps", .present = true, .f64 = 0.25});
  EXPECT_EQ(call.real("eps", 1), 0.25);
  EXPECT_FALSE(call.has("round_before_weight"));
  EXPECT_EQ(call.integer("round_before_weight", 0), 0);
}

TEST(VerifyBound, of_a_sum_grows_with_the_root_of_its_length) {
  EXPECT_DOUBLE_EQ(sum_error(4), 4 * 0x1p-24);
  EXPECT_DOUBLE_EQ(sum_error(10000), 400 * 0x1p-24);
}

TEST(VerifyBound, of_an_operator_that_is_not_known_is_relative_to_the_largest_element) {
  const Tensor y{f32, {3}, {}};
  const CallView call{"acme.twist",
                      {{.name = "y", .present = true, .tensor = &y, .written = true}}};
  const Expected expected = bounded(call, {{1, -8, 0.5}});
  ASSERT_EQ(expected.outputs.size(), 1u);
  for (const double bound : expected.outputs[0].bounds) EXPECT_NEAR(bound, 2 * 8 * 0x1p-10, 1e-9);
}

TEST(VerifyBound, of_integers_is_zero) {
  const Tensor tokens{i64, {2}, {}};
  const CallView call{"sample",
                      {{.name = "tokens", .present = true, .tensor = &tokens, .written = true}}};
  const Expected expected = bounded(call, {{3, 4}});
  const std::vector<std::vector<std::byte>> right = {packed({3, 4}, i64)};
  const std::vector<std::vector<std::byte>> wrong = {packed({3, 5}, i64)};
  EXPECT_FALSE(judge(call, expected, right));
  ASSERT_TRUE(judge(call, expected, wrong));
  EXPECT_EQ(judge(call, expected, wrong)->element, 1u);
}

TEST(VerifyReference, is_run_in_f32_unless_the_rounding_is_visible) {
  const Tensor x{bf16, {1, 4}, {1, 2, 3, 4}};
  CallView call{"fused_add_rms_norm",
                {{.name = "x", .present = true, .tensor = &x, .written = true},
                 {.name = "residual", .present = true, .tensor = &x, .written = true},
                 {.name = "weight"},
                 {.name = "round_before_weight"}}};
  EXPECT_TRUE(widens(call, call.argument("x")));
  EXPECT_FALSE(widens(call, call.argument("residual")));
  call.arguments[0].tied = true;
  EXPECT_FALSE(widens(call, call.argument("x")));
}

}  // namespace
}  // namespace opmux::verify
