#include "stage.hpp"

#include <cmath>
#include <complex>

namespace opmux::test {
namespace {

// Neighbours (2i, 2i + 1) are the real and imaginary part of a number that is rotated by the angle
// of pair i. Mixing up the two styles changes the results from the second pair on.
TEST(Defects, the_reference_of_interleaved_rotary_is_wrong) {
  const Runtime runtime = Runtime::create(bare()).value();
  const Operator rotary = runtime.op("rotary_embedding").value();
  constexpr int kTokens = 3, kHeads = 2, kSize = 8, kPairs = kSize / 2;
  float q[kTokens][kHeads][kSize], table[kTokens][kSize], before[kTokens][kHeads][kSize];
  int64_t positions[kTokens] = {2, 0, 1};
  const auto angle = [](int position, int pair) {
    return position * std::pow(10000.0, -2.0 * pair / kSize);
  };
  for (int p = 0; p < kTokens; ++p) {
    for (int i = 0; i < kPairs; ++i) {
      table[p][i] = static_cast<float>(std::cos(angle(p, i)));
      table[p][kPairs + i] = static_cast<float>(std::sin(angle(p, i)));
    }
    for (int h = 0; h < kHeads; ++h) {
      for (int i = 0; i < kSize; ++i) {
        q[p][h][i] = before[p][h][i] = static_cast<float>(std::sin(p * 31 + h * 7 + i));
      }
    }
  }
  CallReport report;
  const Status status = rotary.with(report)(TensorView(q, f32, {kTokens, kHeads, kSize}), none,
                                            TensorView(positions, i64, {kTokens}),
                                            TensorView(table, f32, {kTokens, kSize}), "gptj");
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(report.implementation, "rotary_embedding/reference.scalar");
  for (int t = 0; t < kTokens; ++t) {
    for (int h = 0; h < kHeads; ++h) {
      for (int i = 0; i < kPairs; ++i) {
        const std::complex<double> number(before[t][h][2 * i], before[t][h][2 * i + 1]);
        const auto turned = number * std::polar(1.0, angle(static_cast<int>(positions[t]), i));
        EXPECT_NEAR(q[t][h][2 * i], turned.real(), 1e-5);
        EXPECT_NEAR(q[t][h][2 * i + 1], turned.imag(), 1e-5);
      }
    }
  }
}

TEST(Defects, an_odd_number_of_rotated_elements_is_found_by_one_kernel_only) {
  const Runtime runtime = Runtime::create(bare()).value();
  const Operator rotary = runtime.op("rotary_embedding").value();
  float q[8] = {}, table[4][5] = {};
  int64_t position = 0;
  CallReport report;
  const Status status =
      rotary.with(report)(TensorView(q, f32, {1, 1, 8}), none, TensorView(&position, i64, {1}),
                          TensorView(table, f32, {4, 5}));
  EXPECT_EQ(status.reason(), "schema.where");
  EXPECT_EQ(report.implementation, "") << "refused before an implementation is chosen";
}

}  // namespace
}  // namespace opmux::test
