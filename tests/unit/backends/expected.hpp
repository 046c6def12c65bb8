// Expected results of the operators, computed in double independently of the kernels, with the
// error that a computation in f32 may have. Shared by the tests of all backends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "abi_call.hpp"

namespace opmux::testing {

inline constexpr double kEps = 0x1p-24;  // Largest relative error of one f32 operation.
inline constexpr opmux_dtype kFloats[] = {kF32, kF16, kBF16};

struct Expected {
  double value;
  double error;  // Before rounding to the output's type.
};

inline void expect_close(const Tensor& y, const std::vector<Expected>& expected) {
  const Format format = Format::of(y.dtype());
  ASSERT_EQ(y.elements(), int64_t(expected.size()));
  for (int64_t i = 0; i < y.elements(); ++i) {
    const auto [value, error] = expected[size_t(i)];
    const double allowed =
        error + format.half_ulp() * (std::fabs(value) + error) + format.half_smallest();
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(y.get(i))) << "element " << i << " is " << y.get(i);
    } else {
      ASSERT_NEAR(y.get(i), value, allowed) << "element " << i;
    }
  }
  EXPECT_TRUE(y.gaps_intact());
}

enum class Layout { contiguous, padded_rows, strided_elements, swapped_leading };
inline constexpr Layout kLayouts[] = {Layout::contiguous, Layout::padded_rows,
                                      Layout::strided_elements, Layout::swapped_leading};

inline std::string name(Layout layout) {
  constexpr const char* kNames[] = {"contiguous", "padded_rows", "strided_elements",
                                    "swapped_leading"};
  return kNames[int(layout)];
}
inline std::string name(opmux_dtype dtype) {
  if (dtype.code == OPMUX_DTYPE_BFLOAT) return "bf16";
  return dtype.bits == 16 ? "f16" : "f32";
}

// padded_rows also starts one element late, so that no row is aligned.
inline Tensor make(opmux_dtype dtype, std::vector<int64_t> shape,
                   Layout layout = Layout::contiguous) {
  std::vector<int64_t> stretched = shape, strides;
  const size_t rank = shape.size();
  if (layout == Layout::padded_rows) stretched.back() += 3;
  if (layout == Layout::swapped_leading && rank > 2) std::swap(stretched[0], stretched[1]);
  strides = Tensor::row_major(stretched);
  if (layout == Layout::strided_elements) {
    for (int64_t& stride : strides) stride *= 3;
  }
  if (layout == Layout::swapped_leading && rank > 2) std::swap(strides[0], strides[1]);
  return Tensor(dtype, std::move(shape), std::move(strides), layout == Layout::padded_rows ? 1 : 0);
}

inline Tensor random(opmux_dtype dtype, std::vector<int64_t> shape,
                     Layout layout = Layout::contiguous, unsigned seed = 1, double mean = 0) {
  Tensor tensor = make(dtype, std::move(shape), layout);
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(mean, 1.5);
  return tensor.fill([&](int64_t) { return normal(engine); });
}

// One rounding error for each addition on the longest path of a sum of `terms` terms: pairwise in
// blocks of 32, or lane by lane in vectors of at least 4.
inline double pairwise_error(int64_t terms) {
  return kEps * (32 + std::log2(double(std::max<int64_t>(terms, 1))));
}
inline double lanes_error(int64_t terms) { return kEps * (8 + double(terms) / 4); }

inline std::vector<std::vector<double>> rows_of(const Tensor& x) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (i % x.dim(-1) == 0) rows.emplace_back();
    rows.back().push_back(x.get(i));
  }
  return rows;
}

// Indices of a row by descending value; equal values keep their order.
inline std::vector<size_t> falling_order(const std::vector<double>& row) {
  std::vector<size_t> order;
  for (size_t i = 0; i < row.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  return order;
}

inline double weight_at(const Tensor* weight, int64_t i) { return weight ? weight->get(i) : 1; }

inline std::vector<Expected> expected_rms_norm(const Tensor& x, const Tensor* weight, double eps,
                                               double sum_error) {
  std::vector<Expected> result;
  for (const std::vector<double>& row : rows_of(x)) {
    double squares = 0;
    for (double v : row) squares += v * v;
    const double root = std::sqrt(squares / double(row.size()) + eps);
    for (size_t i = 0; i < row.size(); ++i) {
      const double value = row[i] / root * weight_at(weight, int64_t(i));
      result.push_back({value, std::fabs(value) * (sum_error + 8 * kEps)});
    }
  }
  return result;
}

inline double silu(double v) { return v / (1 + std::exp(-v)); }

// `error(v)` is the relative error of the activation in f32.
inline std::vector<Expected> expected_gated(const Tensor& x, const std::function<double(double)>& f,
                                            const std::function<double(double)>& error) {
  std::vector<Expected> result;
  const int64_t half = x.dim(-1) / 2;
  for (int64_t i = 0; i < x.elements() / 2; ++i) {
    const int64_t gate = i / half * 2 * half + i % half;
    const double value = f(x.get(gate)) * x.get(gate + half);
    result.push_back({value, std::fabs(value) * error(x.get(gate))});
  }
  return result;
}

// No rows, one, odd and many; lengths below, at and next to vector widths.
inline const std::vector<std::vector<int64_t>> kShapes = {
    {0, 8}, {1, 1}, {1, 7}, {3, 5, 33}, {2, 1, 64}, {17, 100}, {2, 3, 1, 19}, {5}, {2, 4099}};

}  // namespace opmux::testing
