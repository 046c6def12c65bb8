// A strided tensor as rows: the last `inner` dimensions are a row, all others count rows.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <stdexcept>

#include "backends/common/element.hpp"

namespace opmux::backends {

class Rows {
 public:
  explicit Rows(const opmux_tensor& tensor, int inner = 1)
      : tensor_(&tensor), leading_(tensor.ndim - inner) {
    for (int i = 0; i < leading_; ++i) count_ *= tensor.shape[i];
  }

  int64_t count() const { return count_; }

  // Elements from the tensor's first to the row's first; rows are numbered row-major.
  int64_t offset(int64_t row) const {
    int64_t offset = 0;
    for (int i = leading_ - 1; i >= 0; --i) {
      offset += row % tensor_->shape[i] * tensor_->strides[i];
      row /= tensor_->shape[i];
    }
    return offset;
  }

 private:
  const opmux_tensor* tensor_;
  int leading_;
  int64_t count_ = 1;
};

template <class T>
T* first_element(const opmux_tensor& tensor) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

// Distance of neighbours in the last dimension.
inline int64_t inner_stride(const opmux_tensor& tensor) { return tensor.strides[tensor.ndim - 1]; }

// Copies `count` elements of the last dimension, from `offset` on, to f32.
inline void load_row(const opmux_tensor& tensor, int64_t offset, int64_t count, float* to) {
  const bool known = with_element(tensor.dtype, [&]<class T>(Tag<T>) {
    const T* from = first_element<const T>(tensor) + offset;
    const int64_t stride = inner_stride(tensor);
    for (int64_t i = 0; i < count; ++i) to[i] = to_float(from[i * stride]);
  });
  if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
}

// The reverse, rounding to nearest even.
inline void store_row(const opmux_tensor& tensor, int64_t offset, int64_t count,
                      const float* from) {
  const bool known = with_element(tensor.dtype, [&]<class T>(Tag<T>) {
    T* to = first_element<T>(tensor) + offset;
    const int64_t stride = inner_stride(tensor);
    for (int64_t i = 0; i < count; ++i) to[i * stride] = from_float<T>(from[i]);
  });
  if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
}

}  // namespace opmux::backends
