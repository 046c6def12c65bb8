#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quarry {

inline constexpr int64_t kPanel = 8;  ///< outputs computed together

/// A weight packed for the kernel: panels of eight outputs, with the eight weights of each input
/// adjacent, padded with zeros after the last output.
class Panels {
 public:
  /// `weight` has one row per output, `stride` elements apart.
  Panels(const float* weight, int64_t outputs, int64_t inputs, int64_t stride);

  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t count() const { return (outputs_ + kPanel - 1) / kPanel; }
  uint64_t bytes() const { return data_.size() * sizeof(float); }

  /// Computes the outputs of panel `panel` for rows of x; `bias` may be null.
  struct Rows {
    const float* x;
    float* y;
    int64_t count, x_stride, y_stride;
  };
  void multiply(int64_t panel, const Rows& rows, const float* bias) const;

 private:
  std::span<const float> panel_of(int64_t panel) const;

  int64_t outputs_, inputs_;
  std::vector<float> data_;
};

}  // namespace quarry
