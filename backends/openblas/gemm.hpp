// Matrices in the layouts that OpenBLAS accepts: f32, with contiguous rows or contiguous columns.
#pragma once

#include <cblas.h>
#include <opmux/abi.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "backends/common/rows.hpp"

namespace opmux::backends::openblas {

// Part of a tensor: element (r, c) is at `offset` + r * row_stride + c * column_stride.
struct Block {
  const opmux_tensor* tensor;
  int64_t offset;
  int64_t rows, row_stride;
  int64_t columns, column_stride;
};

inline bool is_f32(const opmux_tensor& tensor) {
  return tensor.dtype.code == OPMUX_DTYPE_FLOAT && tensor.dtype.bits == 32 &&
         tensor.dtype.lanes == 1;
}

// Whether OpenBLAS can read `lines` lines of `length` elements, `distance` apart and with stride
// `step` inside a line. The stride of a dimension of size 1 does not matter.
inline bool are_lines(int64_t lines, int64_t distance, int64_t length, int64_t step) {
  if (length > 1 && step != 1) return false;
  return lines <= 1 || (distance >= std::max<int64_t>(1, length) &&
                        distance <= std::numeric_limits<blasint>::max());
}
inline bool is_row_major(const Block& m) {
  return is_f32(*m.tensor) && are_lines(m.rows, m.row_stride, m.columns, m.column_stride);
}
inline bool is_column_major(const Block& m) {
  return is_f32(*m.tensor) && are_lines(m.columns, m.column_stride, m.rows, m.row_stride);
}
inline bool needs_copy(const Block& m) { return !is_row_major(m) && !is_column_major(m); }

// A matrix argument of sgemm.
struct Operand {
  const float* data;
  CBLAS_TRANSPOSE order;
  blasint stride;
};

inline blasint line_stride(int64_t lines, int64_t distance, int64_t length) {
  return blasint(lines > 1 ? distance : std::max<int64_t>(1, length));
}

inline Operand row_major(const float* data, int64_t columns) {
  return {data, CblasNoTrans, blasint(std::max<int64_t>(1, columns))};
}

inline Operand transposed(Operand m) {
  m.order = m.order == CblasNoTrans ? CblasTrans : CblasNoTrans;
  return m;
}

// Copies a block to a dense row-major f32 matrix, reading along the smaller stride.
void copy_block(const Block& m, float* to);

// Copies a dense row-major f32 matrix back to a block, rounding to nearest even. The block's
// columns must be the tensor's last dimension.
inline void store_block(const Block& m, const float* from) {
  for (int64_t r = 0; r < m.rows; ++r) {
    store_row(*m.tensor, m.offset + r * m.row_stride, m.columns, from + r * m.columns);
  }
}

// The block itself if OpenBLAS can read it in place, otherwise a copy in `room`.
inline Operand operand(const Block& m, float* room) {
  const float* data = first_element<const float>(*m.tensor) + m.offset;
  if (is_row_major(m)) {
    return {data, CblasNoTrans, line_stride(m.rows, m.row_stride, m.columns)};
  }
  if (is_column_major(m)) {
    return {data, CblasTrans, line_stride(m.columns, m.column_stride, m.rows)};
  }
  copy_block(m, room);
  return row_major(room, m.columns);
}

// Multiplies a single row with sgemv, which reads b once; sgemm would pack it first.
inline void multiply_row(int64_t columns, int64_t depth, const Operand& a, const Operand& b,
                         float* y) {
  const bool by_rows = b.order == CblasNoTrans;
  cblas_sgemv(CblasRowMajor, by_rows ? CblasTrans : CblasNoTrans,
              blasint(by_rows ? depth : columns), blasint(by_rows ? columns : depth), 1, b.data,
              b.stride, a.data, a.order == CblasNoTrans ? 1 : a.stride, 0, y, 1);
}

// y[rows, columns] = a[rows, depth] * b[depth, columns]; rows of y must be contiguous.
inline void multiply(int64_t rows, int64_t columns, int64_t depth, const Operand& a,
                     const Operand& b, float* y, int64_t y_stride) {
  if (rows == 0 || columns == 0) return;
  if (depth == 0) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(y + r * y_stride, columns, 0.0f);
    return;
  }
  if (rows == 1) return multiply_row(columns, depth, a, b, y);
  cblas_sgemm(CblasRowMajor, a.order, b.order, blasint(rows), blasint(columns), blasint(depth), 1,
              a.data, a.stride, b.data, b.stride, 0, y, blasint(y_stride));
}

}  // namespace opmux::backends::openblas
