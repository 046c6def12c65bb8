#include "simd.hpp"

namespace opmux::testing {
namespace {

class SimdLinear : public SimdTest {};
INSTANTIATE_TEST_SUITE_P(Targets, SimdLinear, kSimdTargets, simd_target_name);

Tensor random_u8(std::vector<int64_t> shape, int64_t below, Layout layout = Layout::contiguous) {
  std::mt19937 engine(5);
  return make(kU8, std::move(shape), layout).fill([&](int64_t) {
    return double(engine() % static_cast<uint64_t>(below));
  });
}

// The result of the reference in f32; sums in another order differ by rounding.
std::vector<Expected> as_the_reference(const std::vector<opmux_arg>& args, const Tensor& y) {
  Tensor shaped = make(kF32, {y.elements() / y.dim(-1), y.dim(-1)});
  std::vector<opmux_arg> to_f32 = args;
  to_f32[0] = arg(shaped);
  EXPECT_EQ(call(reference("linear_w4a16"), to_f32).outcome, OPMUX_OK);
  return around(shaped, 1e-5, 2e-4);
}

TEST_P(SimdLinear, w4a16_is_right_for_every_type_group_and_tail) {
  struct Size {
    int64_t rows, n, k, groups;
  };
  for (const Size s : {Size{1, 3, 2, 1}, Size{5, 9, 60, 3}, Size{4, 4, 1024, 8},
                       Size{9, 6, 2084, 2}, Size{2, 5, 64, 32}, Size{3, 2, 0, 1}}) {
    for (opmux_dtype dtype : kFloats) {
      for (Layout layout : kInnerContiguous) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " k " + std::to_string(s.k));
        const Tensor x = random(dtype, {s.rows, s.k}, layout);
        const Tensor weight = random_u8({s.n, s.k / 2}, 256, layout);
        const Tensor scale = random(dtype, {s.n, s.groups}), bias = random(kF32, {s.n});
        const Tensor zero = random_u8({s.n, s.groups}, 16);
        for (const Tensor* zero_point : {static_cast<const Tensor*>(nullptr), &zero}) {
          const Tensor y = make(dtype, {s.rows, s.n}, layout);
          const std::vector<opmux_arg> args = {arg(y),     arg(x),          arg(weight),
                                               arg(scale), arg(zero_point), arg(bias)};
          ASSERT_EQ(call(simd("linear_w4a16"), args).outcome, OPMUX_OK);
          expect_close(y, as_the_reference(args, y));
        }
      }
    }
  }
}

TEST_P(SimdLinear, w4a16_gives_a_row_the_same_bits_alone_and_among_others) {
  const Tensor x = random(kF32, {7, 1500}), weight = random_u8({10, 750}, 256);
  const Tensor scale = random(kF32, {10, 5});
  Tensor y = make(kF32, {7, 10}), alone = make(kF32, {1, 10});
  ASSERT_EQ(call(simd("linear_w4a16"), {arg(y), arg(x), arg(weight), arg(scale)}).outcome,
            OPMUX_OK);
  Tensor last = make(kF32, {1, 1500}).fill([&](int64_t i) { return x.get(6 * 1500 + i); });
  ASSERT_EQ(call(simd("linear_w4a16"), {arg(alone), arg(last), arg(weight), arg(scale)}).outcome,
            OPMUX_OK);
  for (int64_t n = 0; n < 10; ++n) EXPECT_EQ(y.bits(60 + n), alone.bits(n));
}

}  // namespace
}  // namespace opmux::testing
