#include <opmux/implementation.hpp>

#include "expected_matmul.hpp"
#include "simd.hpp"

namespace opmux::testing {
namespace {

// Up to the four rows that one reading of the matrix serves, and more.
constexpr int64_t kRowCounts[] = {1, 2, 3, 4, 5, 7, 8, 18};

class Gemv : public SimdTest {
 protected:
  static std::vector<int64_t> with_columns(const Tensor& tensor, int64_t columns) {
    const opmux_tensor& c = tensor.c();
    std::vector<int64_t> shape(c.shape, c.shape + c.ndim);
    shape.back() = columns;
    return shape;
  }
  Tensor linear(const Tensor& x, const Tensor& weight, const Tensor* bias, Layout layout) const {
    Tensor y = make(x.dtype(), with_columns(x, weight.dim(0)), layout);
    const auto r = call(simd("linear"), {arg(y), arg(x), arg(weight), arg(bias)});
    EXPECT_EQ(r.outcome, OPMUX_OK) << r.text;
    return y;
  }
  Tensor matmul(const Tensor& a, const Tensor& b, Layout layout) const {
    Tensor y = make(a.dtype(), with_columns(a, b.dim(-1)), layout);
    const auto r = call(simd("matmul"), {arg(y), arg(a), arg(b)});
    EXPECT_EQ(r.outcome, OPMUX_OK) << r.text;
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, Gemv, kSimdTargets, simd_target_name);

TEST_P(Gemv, linear_is_right_for_every_type_stride_and_number_of_rows) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (const int64_t rows : kRowCounts) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " rows=" + std::to_string(rows));
        const Tensor x = random(dtype, {rows, 1, 70}, layout);
        const Tensor weight = random(dtype, {39, 70}, layout, 2);
        const Tensor bias = random(kF32, {39}, layout, 3);
        for (const Tensor* given : {static_cast<const Tensor*>(nullptr), &bias}) {
          expect_close(linear(x, weight, given, layout),
                       in_lanes(expected_linear(x, weight, given), 70));
        }
      }
    }
  }
}

TEST_P(Gemv, linear_is_right_for_every_depth_and_width_up_to_several_vectors) {
  for (int64_t size = 1; size <= 70; ++size) {
    SCOPED_TRACE(size);
    const Tensor x = random(kBF16, {2, size}), weight = random(kBF16, {71 - size, size});
    expect_close(linear(x, weight, nullptr, Layout::contiguous),
                 in_lanes(expected_linear(x, weight, nullptr), size));
  }
}

TEST_P(Gemv, a_row_does_not_depend_on_its_neighbours) {
  const Tensor x = random(kF32, {7, 77}), weight = random(kF32, {37, 77}, Layout::contiguous, 2);
  const Tensor b = random(kF32, {77, 37}, Layout::contiguous, 3);
  const Tensor all = linear(x, weight, nullptr, Layout::contiguous);
  const Tensor product = matmul(x, b, Layout::contiguous);
  for (int64_t r = 0; r < 7; ++r) {
    const Tensor row = make(kF32, {1, 77}).fill([&](int64_t i) { return x.get(r * 77 + i); });
    const Tensor alone = linear(row, weight, nullptr, Layout::contiguous);
    const Tensor alone_product = matmul(row, b, Layout::contiguous);
    for (int64_t i = 0; i < 37; ++i) {
      EXPECT_EQ(alone.get(i), all.get(r * 37 + i));
      EXPECT_EQ(alone_product.get(i), product.get(r * 37 + i));
    }
  }
}

TEST_P(Gemv, matmul_is_right_for_every_type_stride_and_number_of_rows) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (const int64_t rows : kRowCounts) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " rows=" + std::to_string(rows));
        const Tensor a = random(dtype, {2, 3, rows, 21}, layout);
        const Tensor b = random(dtype, {2, 3, 21, 70}, layout, 2);
        expect_close(matmul(a, b, layout), in_lanes(expected_matmul(a, b), 21));
      }
    }
  }
}

TEST_P(Gemv, matmul_is_right_for_more_columns_than_a_block_has) {
  for (int64_t rows : {1, 4, 9}) {
    const Tensor a = random(kF32, {rows, 6}), b = random(kF32, {6, 4120}, Layout::contiguous, 2);
    expect_close(matmul(a, b, Layout::contiguous), in_lanes(expected_matmul(a, b), 6));
  }
}

TEST_P(Gemv, is_right_for_every_depth_and_without_any) {
  for (int64_t depth = 0; depth <= 9; ++depth) {
    const Tensor a = random(kBF16, {3, depth}), b = random(kBF16, {depth, 17});
    expect_close(matmul(a, b, Layout::contiguous), in_lanes(expected_matmul(a, b), depth));
  }
  const Tensor x = make(kF32, {2, 0}), weight = make(kF32, {3, 0});
  const Tensor bias = random(kF32, {3});
  const Tensor y = linear(x, weight, &bias, Layout::contiguous);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.get(i), bias.get(i % 3));
}

TEST_P(Gemv, computes_nothing_for_no_rows) {
  const Tensor weight = random(kF32, {37, 77}), b = random(kF32, {77, 37});
  const Tensor x = make(kF32, {0, 77});
  EXPECT_EQ(linear(x, weight, nullptr, Layout::contiguous).elements(), 0);
  EXPECT_EQ(matmul(x, b, Layout::contiguous).elements(), 0);
}

TEST_P(Gemv, is_good_at_few_rows_and_says_so) {
  for (const char* op : {"linear", "matmul"}) {
    EXPECT_EQ(simd(op).caps->dim_count, 0u) << "it can compute any number of rows";
    ASSERT_EQ(simd(op).hint_count, 1u);
    const opmux_hint& hint = simd(op).hints[0];
    EXPECT_EQ(view(hint.dim), op == std::string("linear") ? "rows" : "M");
    EXPECT_EQ(hint.least, 0);
    EXPECT_EQ(hint.most, 4);
    EXPECT_EQ(hint.priority, simd("rms_norm").priority);
    EXPECT_LT(simd(op).priority, priority_of(Kind::reference));
  }
}

}  // namespace
}  // namespace opmux::testing
