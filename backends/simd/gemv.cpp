// Products with few rows. Every element of the matrix is read once and used immediately, so memory
// bandwidth is the limit and packing the matrix would only add work. With more rows the matrix is
// read several times.
#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/gemv.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include <algorithm>
#include <functional>

#include "backends/simd/vectors-inl.hpp"

#ifndef OPMUX_BACKENDS_SIMD_GEMV_ONCE
#define OPMUX_BACKENDS_SIMD_GEMV_ONCE
namespace opmux::backends::simd {

constexpr int64_t kRowsAtOnce = 4;  // Each reading of the matrix serves so many rows.
// Sums of one block of a matmul, chosen so that they stay in the L1 cache.
constexpr int64_t kMostSums = 4096;

// Rows of x are converted to f32 and padded with zeros to whole vectors of the widest target.
inline int64_t padded(int64_t depth) { return (depth + 15) / 16 * 16; }
inline uint64_t widened_bytes(int64_t rows, int64_t depth) {
  return static_cast<uint64_t>(rows * padded(depth)) * sizeof(float);
}

}  // namespace opmux::backends::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

template <class T>
void widen_row(const T* from, int64_t count, float* to) {
  map(to, static_cast<size_t>(count), [](V v) { return v; }, from);
  std::fill(to + count, to + padded(count), 0.0f);
}

// sums[r][c] = row r of x times row c of the weight. Each lane accumulates one sum whatever the
// number of rows, so a row's result does not depend on the others. Processes several rows of the
// weight at once, because a single stream does not saturate memory bandwidth.
template <int kRows, int kColumns, class T>
HWY_INLINE void dot_products(const float* x, int64_t x_stride, const T* weight, int64_t stride,
                             size_t depth, float sums[][kColumns]) {
  V sum[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sum[r][c] = hn::Zero(F32());
  }
  const auto add = [&](size_t k, const auto& weight_at) HWY_ATTR {
    V w[kColumns];
    for (int c = 0; c < kColumns; ++c) w[c] = weight_at(weight + c * stride + k);
    for (int r = 0; r < kRows; ++r) {
      const V row = load(x + r * x_stride + k);
      for (int c = 0; c < kColumns; ++c) sum[r][c] = hn::MulAdd(row, w[c], sum[r][c]);
    }
  };
  for_each_vector(
      depth, [&](size_t k) HWY_ATTR { add(k, [](const T* from) HWY_ATTR { return load(from); }); },
      [&](size_t k, size_t rest)
          HWY_ATTR { add(k, [&](const T* from) HWY_ATTR { return load_part(from, rest); }); });
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      sums[r][c] = hn::GetLane(hn::SumOfLanes(F32(), sum[r][c]));
    }
  }
}

// Arguments shared by all column blocks of a linear call.
template <class T>
struct LinearRows {
  const float* x;
  int64_t rows, x_stride, depth;
  const T* weight;
  int64_t weight_stride;
  const opmux_tensor* bias;
  const RowsOf<T>& y;
};

template <int kRows, int kColumns, class T>
void linear_block(const LinearRows<T>& l, int64_t row, int64_t column) {
  float sums[kRows][kColumns];
  dot_products<kRows, kColumns>(l.x + row * l.x_stride, l.x_stride,
                                l.weight + column * l.weight_stride, l.weight_stride,
                                static_cast<size_t>(l.depth), sums);
  for (int c = 0; c < kColumns; ++c) {
    const float bias = l.bias ? element_at(*l.bias, (column + c) * l.bias->strides[0]) : 0.0f;
    for (int r = 0; r < kRows; ++r) {
      const float sum = l.bias ? sums[r][c] + bias : sums[r][c];
      l.y[row + r][column + c] = from_float<T>(sum);
    }
  }
}

template <int kRows, class T>
void linear_columns(const LinearRows<T>& l, int64_t row, int64_t first, int64_t last) {
  // As many sums as fit into the registers.
  constexpr int kSums = hn::MaxLanes(F32()) == 16 ? 24 : 8;
  constexpr int kColumns = std::min(8, kSums / kRows);
  int64_t n = first;
  for (; n + kColumns <= last; n += kColumns) linear_block<kRows, kColumns>(l, row, n);
  for (; n < last; ++n) linear_block<kRows, 1>(l, row, n);
}

template <class T>
void linear_columns(const LinearRows<T>& l, int64_t first, int64_t last) {
  for (int64_t row = 0; row < l.rows; row += kRowsAtOnce) {
    switch (l.rows - row) {
      case 1: linear_columns<1>(l, row, first, last); break;
      case 2: linear_columns<2>(l, row, first, last); break;
      case 3: linear_columns<3>(l, row, first, last); break;
      default: linear_columns<kRowsAtOnce>(l, row, first, last); break;
    }
  }
}

int32_t run_linear_gemv(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2);
  const plugin::TensorArg bias = call.optional_tensor(3);
  const int64_t depth = weight.dim(1), width = weight.dim(0);
  return with_dtype(call, {y, x, weight}, [&]<class T>(Tag<T>) {
    auto* const widened = static_cast<float*>(call.workspace());
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    for (int64_t r = 0; r < from.count(); ++r) {
      widen_row(from[r], depth, widened + r * padded(depth));
    }
    const LinearRows<T> l{widened,
                          from.count(),
                          padded(depth),
                          depth,
                          weight.data<const T>(),
                          weight.stride(0),
                          bias ? &bias.c() : nullptr,
                          to};
    constexpr int64_t kBlock = 32;  // In columns.
    call.for_each((width + kBlock - 1) / kBlock, [&](int64_t b) {
      linear_columns(l, b * kBlock, std::min(width, (b + 1) * kBlock));
    });
  });
}

// Adds kStep rows of a matrix, multiplied by the elements of each row of `a`, to sums in the cache,
// so that the matrix is read in memory order. Sums are padded to whole vectors.
template <int kRows, int kStep, class T>
HWY_INLINE void add_matrix_rows(const float* a, int64_t a_stride, const T* b, int64_t stride,
                                size_t width, float* sums, int64_t sums_stride) {
  V factor[kRows][kStep];
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kStep; ++i) factor[r][i] = hn::Set(F32(), a[r * a_stride + i]);
  }
  const auto add = [&](size_t n, const auto& matrix_at) HWY_ATTR {
    V row[kStep];
    for (int i = 0; i < kStep; ++i) row[i] = matrix_at(b + i * stride + n);
    for (int r = 0; r < kRows; ++r) {
      V sum = hn::Mul(factor[r][0], row[0]);
      for (int i = 1; i < kStep; ++i) sum = hn::MulAdd(factor[r][i], row[i], sum);
      float* const to = sums + r * sums_stride + n;
      store(hn::Add(load(to), sum), to);
    }
  };
  for_each_vector(
      width, [&](size_t n) HWY_ATTR { add(n, [](const T* from) HWY_ATTR { return load(from); }); },
      [&](size_t n, size_t rest)
          HWY_ATTR { add(n, [&](const T* from) HWY_ATTR { return load_part(from, rest); }); });
}

// A block of columns of a product with a matrix [K, N].
template <class T>
struct MatrixColumns {
  const float* a;
  int64_t a_stride, depth;
  const T* b;
  int64_t b_stride;
  T* y;
  int64_t y_stride;
  int64_t width;
};

template <int kRows, class T>
void matmul_columns(const MatrixColumns<T>& m) {
  constexpr int kStep = 4;
  float sums[kMostSums];
  const int64_t sums_stride = padded(m.width);
  const auto width = static_cast<size_t>(m.width);
  std::fill(sums, sums + kRows * sums_stride, 0.0f);
  int64_t k = 0;
  for (; k + kStep <= m.depth; k += kStep) {
    add_matrix_rows<kRows, kStep>(m.a + k, m.a_stride, m.b + k * m.b_stride, m.b_stride, width,
                                  sums, sums_stride);
  }
  for (; k < m.depth; ++k) {
    add_matrix_rows<kRows, 1>(m.a + k, m.a_stride, m.b + k * m.b_stride, m.b_stride, width, sums,
                              sums_stride);
  }
  for (int r = 0; r < kRows; ++r) {
    map(m.y + r * m.y_stride, width, [](V v) { return v; }, sums + r * sums_stride);
  }
}

template <class T>
void matmul_columns(int64_t rows, MatrixColumns<T> m) {
  for (; rows > 0; rows -= kRowsAtOnce) {
    switch (rows) {
      case 1: matmul_columns<1>(m); break;
      case 2: matmul_columns<2>(m); break;
      case 3: matmul_columns<3>(m); break;
      default: matmul_columns<kRowsAtOnce>(m); break;
    }
    m.a += kRowsAtOnce * m.a_stride;
    m.y += kRowsAtOnce * m.y_stride;
  }
}

int32_t run_matmul_gemv(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  const int64_t rows = a.dim(-2), depth = a.dim(-1), width = b.dim(-1);
  // Wide blocks read long runs of the matrix' rows; with several threads, blocks are narrower so
  // that every thread gets some.
  const int64_t most = call.parallel() ? kMostSums / 4 : kMostSums;
  const int64_t block = most / std::clamp<int64_t>(rows, 1, kRowsAtOnce) / 16 * 16;
  const int64_t blocks = (width + block - 1) / block;
  return with_dtype(call, {y, a, b}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> as(a, 2), bs(b, 2);
    const RowsOf<T> ys(y, 2);
    auto* const widened = static_cast<float*>(call.workspace());
    for (int64_t i = 0; i < as.count(); ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        widen_row(as[i] + r * a.stride(-2), depth, widened + r * padded(depth));
      }
      call.for_each(blocks, [&](int64_t at) {
        const int64_t first = at * block;
        matmul_columns(
            rows, MatrixColumns<T>{widened, padded(depth), depth, bs[i] + first, b.stride(-2),
                                   ys[i] + first, y.stride(-2), std::min(block, width - first)});
      });
    }
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {
namespace {

void add_gemv(plugin::Backend& backend, const Operator& op, RunFn avx512, RunFn avx2, RunFn sse4,
              const std::function<uint64_t(const plugin::Call&)>& workspace) {
  const std::pair<const Target&, RunFn> variants[] = {
      {kAvx512, avx512}, {kAvx2, avx2}, {kSse4, sse4}};
  for (const auto& [target, run] : variants) {
    if (run) backend.add(implementation(op, target).run(run).workspace(workspace));
  }
}

}  // namespace

void add_linear(plugin::Backend& backend) {
  add_gemv(
      backend,
      {.name = "linear",
       .signature = "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], "
                    "Tensor? bias[N])",
       .alike = {dtype_of("x"), dtype_of("y"), dtype_of("weight")},
       .fast = Range{.dim = "rows", .most = kRowsAtOnce}},
      OPMUX_SIMD_VARIANTS(run_linear_gemv), [](const plugin::Call& call) {
        const plugin::TensorArg x = call.tensor(1);
        return widened_bytes(Rows(x.c()).count(), x.dim(-1));
      });
}

void add_matmul(plugin::Backend& backend) {
  add_gemv(
      backend,
      {.name = "matmul",
       .signature = "matmul(out Tensor y[..., M, N], Tensor a[..., M, K], Tensor b[..., K, N])",
       .alike = {dtype_of("a"), dtype_of("y"), dtype_of("b")},
       .fast = Range{.dim = "M", .most = kRowsAtOnce}},
      OPMUX_SIMD_VARIANTS(run_matmul_gemv), [](const plugin::Call& call) {
        const plugin::TensorArg a = call.tensor(1);
        return widened_bytes(a.dim(-2), a.dim(-1));
      });
}

}  // namespace opmux::backends::simd
#endif
