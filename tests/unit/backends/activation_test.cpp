#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

double gelu(double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }
double gelu_tanh(double v) {
  return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
}
double silu_error(double v) { return (8 + std::fabs(v)) * kEps; }
// The tail falls like exp(-v^2 / 2), and the argument of tanh grows like v^3 / 10.
double gelu_error(double v) { return (12 + 2 * v * v) * kEps; }
double gelu_tanh_error(double v) { return (12 + 8 * std::fabs(v) + std::fabs(v * v * v)) * kEps; }

struct Case {
  const char* op;
  std::vector<opmux_arg> extra;
  double (*activation)(double);
  double (*error)(double);
};

class ReferenceActivation : public ::testing::TestWithParam<Case> {};

TEST_P(ReferenceActivation, is_right_for_every_type_shape_and_stride) {
  const Case& c = GetParam();
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (auto shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        Tensor y = make(dtype, shape, layout);
        shape.back() *= 2;
        const Tensor x = random(dtype, shape, layout);
        std::vector<opmux_arg> args = {arg(y), arg(x)};
        args.insert(args.end(), c.extra.begin(), c.extra.end());
        const auto r = call(reference(c.op), args);
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_gated(x, c.activation, c.error));
      }
    }
  }
}

TEST_P(ReferenceActivation, gate_is_the_first_half) {
  Tensor x = make(kF32, {1, 2}), y = make(kF32, {1, 1});
  x.fill([](int64_t i) { return i == 0 ? -2 : 3; });
  std::vector<opmux_arg> args = {arg(y), arg(x)};
  args.insert(args.end(), GetParam().extra.begin(), GetParam().extra.end());
  ASSERT_EQ(call(reference(GetParam().op), args).outcome, OPMUX_OK);
  EXPECT_NEAR(y.get(0), 3 * GetParam().activation(-2), 1e-6);
}

TEST_P(ReferenceActivation, large_values_neither_overflow_nor_become_nan) {
  Tensor x = make(kF32, {2, 2}), y = make(kF32, {2, 1});
  const double values[] = {-300, 1, 300, 2};
  x.fill([&](int64_t i) { return values[i]; });
  std::vector<opmux_arg> args = {arg(y), arg(x)};
  args.insert(args.end(), GetParam().extra.begin(), GetParam().extra.end());
  ASSERT_EQ(call(reference(GetParam().op), args).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(0), 0);
  EXPECT_EQ(y.get(1), 600);
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferenceActivation,
    ::testing::Values(Case{"silu_and_mul", {}, silu, silu_error},
                      Case{"gelu_and_mul", {enum_arg(0)}, gelu, gelu_error},
                      Case{"gelu_and_mul", {enum_arg(1)}, gelu_tanh, gelu_tanh_error}),
    [](const auto& c) { return std::string(c.param.op) + (c.index == 2 ? "_tanh" : ""); });

TEST(ReferenceGelu, both_forms_differ) {
  Tensor x = make(kF32, {1, 2}), erf = make(kF32, {1, 1}), tanh = erf;
  x.fill([](int64_t i) { return i == 0 ? 2.2 : 1; });
  call(reference("gelu_and_mul"), {arg(erf), arg(x), enum_arg(0)});
  call(reference("gelu_and_mul"), {arg(tanh), arg(x), enum_arg(1)});
  EXPECT_GT(std::fabs(erf.get(0) - tanh.get(0)), 1e-4);
}

}  // namespace
}  // namespace opmux::testing
