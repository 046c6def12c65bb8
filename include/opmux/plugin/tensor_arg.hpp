/// Tensor arguments and element types. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <span>

namespace opmux::plugin {

/// Element types for Caps::dtypes() and TensorArg::is().
inline constexpr opmux_dtype f32{OPMUX_DTYPE_FLOAT, 32, 1};
inline constexpr opmux_dtype f16{OPMUX_DTYPE_FLOAT, 16, 1};
inline constexpr opmux_dtype bf16{OPMUX_DTYPE_BFLOAT, 16, 1};
inline constexpr opmux_dtype i64{OPMUX_DTYPE_INT, 64, 1};
inline constexpr opmux_dtype i32{OPMUX_DTYPE_INT, 32, 1};
inline constexpr opmux_dtype i8{OPMUX_DTYPE_INT, 8, 1};
inline constexpr opmux_dtype u8{OPMUX_DTYPE_UINT, 8, 1};
inline constexpr opmux_dtype boolean{OPMUX_DTYPE_BOOL, 8, 1};
inline constexpr opmux_dtype f8_e4m3fn{OPMUX_DTYPE_FLOAT8_E4M3FN, 8, 1};
inline constexpr opmux_dtype f8_e4m3fnuz{OPMUX_DTYPE_FLOAT8_E4M3FNUZ, 8, 1};
inline constexpr opmux_dtype f8_e5m2{OPMUX_DTYPE_FLOAT8_E5M2, 8, 1};
inline constexpr opmux_dtype f8_e5m2fnuz{OPMUX_DTYPE_FLOAT8_E5M2FNUZ, 8, 1};
inline constexpr opmux_dtype f4_e2m1fn_x2{OPMUX_DTYPE_FLOAT4_E2M1FN, 4, 2};

/// Whether two element types are equal.
constexpr bool same(opmux_dtype a, opmux_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/// A tensor argument of a call. An optional argument that was not given is absent: then only
/// present() may be called.
///
///   namespace op = opmux::plugin;
///   auto sum = [](const op::TensorArg& x) {
///     double total = 0;
///     if (x && x.is(op::f32)) {
///       for (int64_t i = 0; i < x.elements(); ++i) total += x.data<float>()[i];
///     }
///     return total;
///   };
///
/// Borrowed for the call; cheap to copy.
class TensorArg {
 public:
  TensorArg() = default;
  explicit TensorArg(const opmux_tensor* tensor) : tensor_(tensor) {}

  /// Whether the argument was given.
  bool present() const { return tensor_ != nullptr; }
  explicit operator bool() const { return present(); }
  /// The C struct.
  const opmux_tensor& c() const { return *tensor_; }
  /// The first element, byte_offset applied. Meaningless on devices whose data pointer is a handle.
  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(tensor_->data) + tensor_->byte_offset);
  }
  /// The element type, and whether it is a certain one.
  opmux_dtype dtype() const { return tensor_->dtype; }
  bool is(opmux_dtype dtype) const { return same(tensor_->dtype, dtype); }
  /// Number of dimensions.
  int rank() const { return tensor_->ndim; }
  /// Size and stride of dimension i; -1 is the last one. Strides count elements. Not checked.
  int64_t dim(int i) const { return tensor_->shape[i < 0 ? i + rank() : i]; }
  int64_t stride(int i) const { return tensor_->strides[i < 0 ? i + rank() : i]; }
  /// All sizes and all strides.
  std::span<const int64_t> shape() const { return {tensor_->shape, size_t(rank())}; }
  std::span<const int64_t> strides() const { return {tensor_->strides, size_t(rank())}; }
  /// Product of all sizes; 1 for rank 0.
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : shape()) product *= size;
    return product;
  }

 private:
  const opmux_tensor* tensor_ = nullptr;
};

}  // namespace opmux::plugin
