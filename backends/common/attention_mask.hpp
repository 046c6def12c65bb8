// The optional mask argument of attention, broadcast to [B, HQ, S, T] from any rank up to 4.
#pragma once

#include <opmux/abi.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "backends/common/element.hpp"
#include "backends/common/rows.hpp"

namespace opmux::backends {

class AttentionMask {
 public:
  // A default-constructed mask masks nothing.
  AttentionMask() = default;

  // Aligns the tensor's dimensions with the trailing dimensions of `shape`; a dimension of size 1
  // is repeated. Returns false if the shapes do not broadcast. Keeps a pointer to `tensor`.
  bool broadcast(const opmux_tensor& tensor, const std::array<int64_t, 4>& shape) {
    if (tensor.ndim > 4) return false;
    const auto absent = static_cast<size_t>(4 - tensor.ndim);
    for (int i = 0; i < tensor.ndim; ++i) {
      const size_t place = absent + static_cast<size_t>(i);
      if (tensor.shape[i] != shape[place] && tensor.shape[i] != 1) return false;
      strides_[place] = tensor.shape[i] == 1 ? 0 : tensor.strides[i];
    }
    tensor_ = &tensor;
    return true;
  }

  explicit operator bool() const { return tensor_ != nullptr; }

  // The term added to one logit: the element of a float mask; for a bool mask, 0 if true and -inf
  // if false; 0 without a mask.
  float at(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    float value = 0;
    if (tensor_) load(batch, head, query, key, 1, &value);
    return value;
  }

  // Writes the terms for keys [key, key + count). Requires a tensor.
  void load(int64_t batch, int64_t head, int64_t query, int64_t key, int64_t count,
            float* to) const {
    const int64_t first =
        batch * strides_[0] + head * strides_[1] + query * strides_[2] + key * strides_[3];
    const bool is_float = with_element(tensor_->dtype, [&]<class T>(Tag<T>) {
      const T* from = first_element<const T>(*tensor_) + first;
      for (int64_t i = 0; i < count; ++i) to[i] = to_float(from[i * strides_[3]]);
    });
    if (is_float) return;
    const uint8_t* attends = first_element<const uint8_t>(*tensor_) + first;
    for (int64_t i = 0; i < count; ++i) {
      to[i] = attends[i * strides_[3]] != 0 ? 0 : -std::numeric_limits<float>::infinity();
    }
  }

 private:
  const opmux_tensor* tensor_ = nullptr;
  std::array<int64_t, 4> strides_{};
};

inline std::string mask_refusal(const opmux_tensor& mask) {
  std::string shape;
  for (int i = 0; i < mask.ndim; ++i) {
    shape += (i == 0 ? "" : ", ") + std::to_string(mask.shape[i]);
  }
  return "a mask of shape [" + shape + "] does not broadcast to [B, HQ, S, T]";
}

}  // namespace opmux::backends
