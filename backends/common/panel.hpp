// Matrix products in f32, 64 columns at a time. The loops have a fixed length, so every compiler
// vectorizes them, and the order of additions does not depend on the other rows or columns.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "backends/common/element.hpp"
#include "backends/common/rows.hpp"

namespace opmux::backends {

inline constexpr int64_t kPanelWidth = 64;

// A matrix inside a tensor: element (k, c) is at `offset` + k * depth_stride + c * width_stride.
// Products sum over k.
struct Matrix {
  const opmux_tensor* tensor;
  int64_t offset;
  int64_t depth, depth_stride;
  int64_t width, width_stride;
};

// Up to 64 columns of a matrix, converted to f32.
class Panel {
 public:
  explicit Panel(int64_t depth) : values_(static_cast<size_t>(depth * kPanelWidth)) {}

  // Sets element (k, c) to value(k, c) for k < depth and c < width; other elements keep their
  // values.
  template <class Value>
  void fill(int64_t depth, int64_t width, const Value& value) {
    for (int64_t k = 0; k < depth; ++k) {
      float* row = values_.data() + k * kPanelWidth;
      for (int64_t c = 0; c < width; ++c) row[c] = value(k, c);
    }
  }

  // Loads up to 64 columns of `matrix`, starting at `column`; returns the number of columns loaded.
  int64_t load(const Matrix& matrix, int64_t column) {
    const int64_t width = std::min(kPanelWidth, matrix.width - column);
    const bool known = with_element(matrix.tensor->dtype, [&]<class T>(Tag<T>) {
      const T* from = first_element<const T>(*matrix.tensor) + matrix.offset;
      fill(matrix.depth, width, [&](int64_t k, int64_t c) {
        return to_float(from[k * matrix.depth_stride + (column + c) * matrix.width_stride]);
      });
    });
    if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
    return width;
  }

  // to[c] = sum of weights[k] * element (first + k, c) over k < count, for all 64 columns, summed
  // pairwise as in pairwise_sum. With kSkipZeros, a zero weight skips its row, so that NaN in that
  // row does not propagate.
  template <bool kSkipZeros = false>
  void weighted_sum(const float* weights, int64_t first, int64_t count, float* to) const {
    constexpr int64_t kBlock = 32;
    float sum[kPanelWidth] = {};
    if (count > kBlock) {
      const int64_t half = count / 2;
      float right[kPanelWidth];
      weighted_sum<kSkipZeros>(weights, first, half, sum);
      weighted_sum<kSkipZeros>(weights + half, first + half, count - half, right);
      for (int64_t c = 0; c < kPanelWidth; ++c) sum[c] += right[c];
    } else {
      const float* row = values_.data() + first * kPanelWidth;
      for (int64_t k = 0; k < count; ++k, row += kPanelWidth) {
        if (kSkipZeros && weights[k] == 0) continue;
        for (int64_t c = 0; c < kPanelWidth; ++c) sum[c] += weights[k] * row[c];
      }
    }
    std::copy_n(sum, kPanelWidth, to);
  }

 private:
  std::vector<float> values_;
};

// to[r][c] = sum over k of rows[r][k] * matrix(k, c); both are row-major and dense. `panel` must
// have the depth of the matrix. Does not allocate.
inline void multiply(const float* rows, int64_t count, const Matrix& matrix, Panel& panel,
                     float* to) {
  float sums[kPanelWidth];
  for (int64_t column = 0; column < matrix.width; column += kPanelWidth) {
    const int64_t width = panel.load(matrix, column);
    for (int64_t r = 0; r < count; ++r) {
      panel.weighted_sum(rows + r * matrix.depth, 0, matrix.depth, sums);
      std::copy_n(sums, width, to + r * matrix.width + column);
    }
  }
}

}  // namespace opmux::backends
