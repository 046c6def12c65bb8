#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

constexpr int64_t kNeox = 0, kGptj = 1;

// Cosines in the first half of the columns, sines in the second.
Tensor make_cos_sin(opmux_dtype dtype, int64_t positions, int64_t rotated,
                    Layout layout = Layout::contiguous) {
  Tensor table = make(dtype, {positions, rotated}, layout);
  return table.fill([&](int64_t i) {
    const int64_t column = i % rotated, pairs = std::max<int64_t>(1, rotated / 2);
    const double angle =
        double(i / rotated) * std::pow(10000.0, -double(column % pairs) / double(pairs));
    return column < rotated / 2 ? std::cos(angle) : std::sin(angle);
  });
}

// Rotates complex numbers: (a + bi) * (cos + i sin).
std::vector<Expected> expected_rotary(const Tensor& heads, const Tensor& positions,
                                      const Tensor& cos_sin, int64_t style) {
  const int64_t size = heads.dim(-1), rotated = cos_sin.dim(1), pairs = rotated / 2;
  const int64_t per_token = heads.dim(-2) * size;
  std::vector<Expected> result;
  for (int64_t i = 0; i < heads.elements(); ++i) result.push_back({heads.get(i), 0});
  for (int64_t head = 0; head < heads.elements(); head += size) {
    const int64_t row = int64_t(positions.get(head / per_token)) * rotated;
    for (int64_t p = 0; p < pairs; ++p) {
      const int64_t real = head + (style == kGptj ? 2 * p : p);
      const int64_t imaginary = style == kGptj ? real + 1 : real + pairs;
      const double a = heads.get(real), b = heads.get(imaginary);
      const double c = cos_sin.get(row + p), s = cos_sin.get(row + pairs + p);
      const double error = 4 * kEps * (std::fabs(a) + std::fabs(b));
      result[size_t(real)] = {a * c - b * s, error};
      result[size_t(imaginary)] = {a * s + b * c, error};
    }
  }
  return result;
}

Tensor make_positions(opmux_dtype dtype, std::vector<int64_t> shape, int64_t limit,
                      Layout layout = Layout::contiguous) {
  return make(dtype, std::move(shape), layout).fill([=](int64_t i) {
    return double((i * 7 + 3) % limit);
  });
}

CallResult rotate(const Tensor& q, const Tensor* k, const Tensor& positions, const Tensor& cos_sin,
                  int64_t style) {
  return call(reference("rotary_embedding"),
              {arg(q), arg(k), arg(positions), arg(cos_sin), enum_arg(style)});
}

TEST(ReferenceRotary, is_right_for_every_type_style_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : {Layout::contiguous, Layout::padded_rows, Layout::strided_elements}) {
      for (int64_t style : {kNeox, kGptj}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + (style ? " gptj" : " neox"));
        Tensor q = random(dtype, {5, 4, 16}, layout), k = random(dtype, {5, 2, 16}, layout, 9);
        const Tensor positions = make_positions(kI64, {5}, 11, layout);
        const Tensor cos_sin = make_cos_sin(kF32, 11, 16, layout);
        const auto q_expected = expected_rotary(q, positions, cos_sin, style);
        const auto k_expected = expected_rotary(k, positions, cos_sin, style);
        const auto r = rotate(q, &k, positions, cos_sin, style);
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(q, q_expected);
        expect_close(k, k_expected);
      }
    }
  }
}

TEST(ReferenceRotary, interleaved_rotary_pairs_neighbours) {
  // A quarter turn maps (a, b) to (-b, a), so every pair can be identified in the result.
  Tensor cos_sin = make(kF32, {1, 4}), position = make(kI64, {1});
  cos_sin.fill([](int64_t i) { return i < 2 ? 0 : 1; });
  position.set(0, 0);
  Tensor gptj = make(kF32, {1, 1, 4}).fill([](int64_t i) { return double(i + 1); }), neox = gptj;
  ASSERT_EQ(rotate(gptj, nullptr, position, cos_sin, kGptj).outcome, OPMUX_OK);
  ASSERT_EQ(rotate(neox, nullptr, position, cos_sin, kNeox).outcome, OPMUX_OK);
  const double neighbours[] = {-2, 1, -4, 3}, halves[] = {-3, -4, 1, 2};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(gptj.get(i), neighbours[i]);
    EXPECT_EQ(neox.get(i), halves[i]);
  }
}

TEST(ReferenceRotary, partial_rotary_leaves_the_tail_untouched) {
  for (int64_t style : {kNeox, kGptj}) {
    Tensor q = random(kBF16, {3, 2, 10});
    const Tensor before = q, positions = make_positions(kI32, {3}, 5);
    const Tensor cos_sin = make_cos_sin(kF32, 5, 6);
    const auto expected = expected_rotary(q, positions, cos_sin, style);
    ASSERT_EQ(rotate(q, nullptr, positions, cos_sin, style).outcome, OPMUX_OK);
    expect_close(q, expected);
    for (int64_t head = 0; head < q.elements(); head += 10) {
      for (int64_t i = head + 6; i < head + 10; ++i) EXPECT_EQ(q.bits(i), before.bits(i));
    }
    EXPECT_NE(q.bits(0), before.bits(0));
  }
}

TEST(ReferenceRotary, positions_may_have_any_leading_dimensions_and_both_widths) {
  for (opmux_dtype integer : {kI32, kI64}) {
    for (std::vector<int64_t> leading : {std::vector<int64_t>{}, {0}, {2, 3}, {2, 1, 3}}) {
      std::vector<int64_t> shape = leading;
      shape.insert(shape.end(), {2, 8});
      Tensor q = random(kF32, shape, Layout::swapped_leading);
      const Tensor positions = make_positions(integer, leading, 9, Layout::swapped_leading);
      const Tensor cos_sin = make_cos_sin(kBF16, 9, 8);
      const auto expected = expected_rotary(q, positions, cos_sin, kNeox);
      ASSERT_EQ(rotate(q, nullptr, positions, cos_sin, kNeox).outcome, OPMUX_OK);
      expect_close(q, expected);
    }
  }
}

TEST(ReferenceRotary, position_out_of_range_is_an_invalid_argument_and_nothing_is_written) {
  for (int64_t bad : {-1, 4}) {
    Tensor q = random(kF32, {3, 2, 8}), k = q;
    const Tensor q_before = q;
    Tensor positions = make_positions(kI64, {3}, 4);
    positions.set(2, double(bad));
    const auto r = rotate(q, &k, positions, make_cos_sin(kF32, 4, 8), kNeox);
    EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
    EXPECT_EQ(r.code, "rotary.position");
    EXPECT_EQ(r.text, "position " + std::to_string(bad) + " of token 2 is outside [0, 4)");
    EXPECT_EQ(q.bytes(), q_before.bytes());
    EXPECT_EQ(k.bytes(), q_before.bytes());
  }
}

}  // namespace
}  // namespace opmux::testing
