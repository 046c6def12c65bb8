// Views a strided tensor as rows: the last `inner` dimensions form a row, the others number the
// rows.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "backends/common/element.hpp"

namespace opmux::backends {

class Rows {
 public:
  explicit Rows(const opmux_tensor& tensor, int inner = 1)
      : tensor_(&tensor), leading_(tensor.ndim - inner) {
    for (int i = 0; i < leading_; ++i) count_ *= tensor.shape[i];
  }

  int64_t count() const { return count_; }

  // Offset, in elements, of a row's first element from the tensor's first element; rows are
  // numbered in row-major order.
  int64_t offset(int64_t row) const {
    int64_t offset = 0;
    for (int i = leading_ - 1; i > 0; --i) {
      offset += row % tensor_->shape[i] * tensor_->strides[i];
      row /= tensor_->shape[i];
    }
    // The remaining index is below shape[0], so the common 2-D case needs no division.
    return leading_ > 0 ? offset + row * tensor_->strides[0] : 0;
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

// Stride of the last dimension, in elements.
inline int64_t inner_stride(const opmux_tensor& tensor) { return tensor.strides[tensor.ndim - 1]; }

// Reads one element as f32.
inline float element_at(const opmux_tensor& tensor, int64_t offset) {
  float value = 0;
  const bool known = with_element(tensor.dtype, [&]<class T>(Tag<T>) {
    value = to_float(first_element<const T>(tensor)[offset]);
  });
  if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
  return value;
}

// Loads `count` elements as f32, starting at `offset` and `stride` elements apart.
inline void load_strided(const opmux_tensor& tensor, int64_t offset, int64_t stride, int64_t count,
                         float* to) {
  const bool known = with_element(tensor.dtype, [&]<class T>(Tag<T>) {
    const T* from = first_element<const T>(tensor) + offset;
    for (int64_t i = 0; i < count; ++i) to[i] = to_float(from[i * stride]);
  });
  if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
}

// Like load_strided, along the last dimension.
inline void load_row(const opmux_tensor& tensor, int64_t offset, int64_t count, float* to) {
  load_strided(tensor, offset, inner_stride(tensor), count, to);
}

// Stores f32 values along the last dimension, rounding to nearest even.
inline void store_row(const opmux_tensor& tensor, int64_t offset, int64_t count,
                      const float* from) {
  const bool known = with_element(tensor.dtype, [&]<class T>(Tag<T>) {
    T* to = first_element<T>(tensor) + offset;
    const int64_t stride = inner_stride(tensor);
    for (int64_t i = 0; i < count; ++i) to[i * stride] = from_float<T>(from[i]);
  });
  if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
}

// Copies a row to another tensor: bitwise if the dtypes are equal, otherwise through f32.
inline void copy_row(const opmux_tensor& from, int64_t from_offset, const opmux_tensor& to,
                     int64_t to_offset, int64_t count) {
  const bool known = with_element(from.dtype, [&]<class From>(Tag<From>) {
    const From* source = first_element<const From>(from) + from_offset;
    const int64_t from_stride = inner_stride(from), to_stride = inner_stride(to);
    const bool stored = with_element(to.dtype, [&]<class To>(Tag<To>) {
      To* target = first_element<To>(to) + to_offset;
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<From, To>) {
          target[i * to_stride] = source[i * from_stride];
        } else {
          target[i * to_stride] = from_float<To>(to_float(source[i * from_stride]));
        }
      }
    });
    if (!stored) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
  });
  if (!known) throw std::invalid_argument("a tensor is neither f32 nor f16 nor bf16");
}

}  // namespace opmux::backends
