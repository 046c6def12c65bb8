/// Tensors as kernels see them. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <span>

namespace opmux::plugin {

inline constexpr opmux_dtype f32{OPMUX_DTYPE_FLOAT, 32, 1};
inline constexpr opmux_dtype f16{OPMUX_DTYPE_FLOAT, 16, 1};
inline constexpr opmux_dtype bf16{OPMUX_DTYPE_BFLOAT, 16, 1};
inline constexpr opmux_dtype i64{OPMUX_DTYPE_INT, 64, 1};
inline constexpr opmux_dtype i32{OPMUX_DTYPE_INT, 32, 1};
inline constexpr opmux_dtype i8{OPMUX_DTYPE_INT, 8, 1};
inline constexpr opmux_dtype u8{OPMUX_DTYPE_UINT, 8, 1};
inline constexpr opmux_dtype boolean{OPMUX_DTYPE_BOOL, 8, 1};

constexpr bool same(opmux_dtype a, opmux_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/// A tensor argument; absent if it was optional and not given. Only present() may then be asked.
class TensorArg {
 public:
  TensorArg() = default;
  explicit TensorArg(const opmux_tensor* tensor) : tensor_(tensor) {}

  bool present() const { return tensor_ != nullptr; }
  explicit operator bool() const { return present(); }
  const opmux_tensor& c() const { return *tensor_; }
  /// The first element, byte_offset applied.
  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(tensor_->data) + tensor_->byte_offset);
  }
  opmux_dtype dtype() const { return tensor_->dtype; }
  bool is(opmux_dtype dtype) const { return same(tensor_->dtype, dtype); }
  int rank() const { return tensor_->ndim; }
  /// Negative positions count from the last dimension; strides count elements.
  int64_t dim(int i) const { return tensor_->shape[i < 0 ? i + rank() : i]; }
  int64_t stride(int i) const { return tensor_->strides[i < 0 ? i + rank() : i]; }
  std::span<const int64_t> shape() const { return {tensor_->shape, size_t(rank())}; }
  std::span<const int64_t> strides() const { return {tensor_->strides, size_t(rank())}; }
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : shape()) product *= size;
    return product;
  }

 private:
  const opmux_tensor* tensor_ = nullptr;
};

}  // namespace opmux::plugin
