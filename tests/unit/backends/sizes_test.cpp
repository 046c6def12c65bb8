// Choices of the backends by the sizes of a call. Hints rank kernels by sizes; limits that refuse
// calls, as a policy can set them, must lead to the same choices.
#include <opmux/opmux.hpp>

#include <gmock/gmock.h>

#include <map>

namespace opmux::testing {
namespace {

// The sizes for which the kernels with hints were written. Each rule refuses the other sizes.
constexpr char kLimits[] = R"(opmux: 1
rules:
  - op: linear
    when: rows > 4
    deny: ["linear/simd.avx512", "linear/simd.avx2", "linear/simd.sse4"]
  - op: linear
    when: rows < 5 || rows > 1024
    deny: ["linear/simd.amx"]
  - op: matmul
    when: M > 4
    deny: ["matmul/simd.*"]
  - op: attention
    when: S < 16
    deny: ["attention/onednn.*"]
)";

// Shapes only: explain() reads no data.
TensorView of_shape(DType dtype, std::initializer_list<int64_t> shape) {
  static char data[64];
  return {data, dtype, shape};
}

// The chosen implementation for each call of a grid, by a description of the call.
std::map<std::string, std::string> choices(Runtime& runtime) {
  std::map<std::string, std::string> chosen;
  const Operator linear = runtime.op("linear").value(), matmul = runtime.op("matmul").value(),
                 attention = runtime.op("attention").value();
  const auto note = [&](const Explanation& why) {
    chosen[why.op + " " + why.arguments] = why.chosen;
  };
  for (const DType dtype : {f32, f16, bf16}) {
    for (const int64_t rows : {0, 1, 2, 3, 4, 5, 6, 15, 16, 17, 64, 1023, 1024, 1025, 4096}) {
      for (const int64_t width : {1, 16, 40, 4096}) {
        for (const int64_t depth : {1, 31, 32, 64, 4096}) {
          const TensorView x = of_shape(dtype, {rows, depth});
          note(linear.explain(none, x, of_shape(dtype, {width, depth})));
          note(matmul.explain(none, x, of_shape(dtype, {depth, width})));
        }
      }
    }
    for (const int64_t queries : {1, 2, 15, 16, 17, 300}) {
      for (const int64_t head : {1, 64, 640, 641, 2000}) {
        const TensorView q = of_shape(dtype, {2, queries, 4, head});
        const TensorView k = of_shape(dtype, {2, 300, 2, head});
        note(attention.explain(none, q, k, k));
      }
    }
  }
  return chosen;
}

TEST(Sizes, hints_choose_what_limits_would_choose) {
  Runtime runtime = Runtime::create().value();
  const auto by_hints = choices(runtime);
  ASSERT_GT(by_hints.size(), 1800u);
  const Status limited = runtime.policy().load(kLimits, "limits.yaml");
  ASSERT_TRUE(limited.ok()) << limited.to_string();
  EXPECT_THAT(choices(runtime), ::testing::ContainerEq(by_hints));
}

TEST(Sizes, a_kernel_also_runs_for_sizes_that_it_is_not_good_at) {
  Runtime runtime = Runtime::create().value();
  const Explanation few =
      runtime.op("linear").value().explain(none, of_shape(f32, {2, 64}), of_shape(f32, {16, 64}));
  if (!few.chosen.starts_with("linear/simd.")) GTEST_SKIP() << "no vectors on this processor";
  const PolicyScope only(runtime, {.require = {"impl:" + few.chosen}});
  std::vector<float> x(8 * 64, 1.0f), weight(16 * 64, 0.5f), y(8 * 16);
  CallReport report;
  const Status status = runtime.op("linear").value().with(report)(
      TensorView(y.data(), f32, {8, 16}), TensorView(x.data(), f32, {8, 64}),
      TensorView(weight.data(), f32, {16, 64}));
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(report.implementation, few.chosen);
  EXPECT_THAT(y, ::testing::Each(32.0f));
}

}  // namespace
}  // namespace opmux::testing
