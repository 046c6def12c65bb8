#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <opmux/abi.h>
#include <opmux/export.hpp>

namespace opmux {

/// An element type; DLPack's codes.
struct DType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  friend constexpr bool operator==(DType, DType) = default;
  constexpr int64_t size_bytes() const { return (int64_t{bits} * lanes + 7) / 8; }
  constexpr uint32_t packed() const {
    return static_cast<uint32_t>(code) | static_cast<uint32_t>(bits) << 8 |
           static_cast<uint32_t>(lanes) << 16;
  }
  static constexpr DType from_packed(uint32_t word) {
    return {static_cast<uint8_t>(word), static_cast<uint8_t>(word >> 8),
            static_cast<uint16_t>(word >> 16)};
  }
};

inline constexpr DType f64{OPMUX_DTYPE_FLOAT, 64};
inline constexpr DType f32{OPMUX_DTYPE_FLOAT, 32};
inline constexpr DType f16{OPMUX_DTYPE_FLOAT, 16};
inline constexpr DType bf16{OPMUX_DTYPE_BFLOAT, 16};
inline constexpr DType i64{OPMUX_DTYPE_INT, 64};
inline constexpr DType i32{OPMUX_DTYPE_INT, 32};
inline constexpr DType i16{OPMUX_DTYPE_INT, 16};
inline constexpr DType i8{OPMUX_DTYPE_INT, 8};
inline constexpr DType u8{OPMUX_DTYPE_UINT, 8};
inline constexpr DType boolean{OPMUX_DTYPE_BOOL, 8};

/// "bf16", "f32", "i64", "bool"; "10.8x1" (code, bits, lanes) for what has no name.
OPMUX_API std::string name_of(DType dtype);
/// Fails (returns a DType with bits 0) for an unknown word.
OPMUX_API DType parse_dtype(std::string_view word);

/// A device: type number of DLPack, and which one of that type.
struct Device {
  int32_t type = OPMUX_DEVICE_CPU;
  int32_t id = 0;
  friend constexpr bool operator==(Device, Device) = default;
};

/// Whether the data pointer of a tensor on such a device is a handle, such as a cl_mem, and no
/// address: the handle and the byte offset together say where the first element lies.
constexpr bool has_handles(Device device) {
  // OpenCL, Vulkan, Metal, WebGPU.
  return device.type == OPMUX_DEVICE_OPENCL || device.type == 7 || device.type == 8 ||
         device.type == 15;
}

/// "cpu:0", "cuda:1", "device8:0" for a type without a name.
OPMUX_API std::string name_of(Device device);

/// A borrowed tensor: pointer, element type, shape, strides, device. At most 8 dimensions.
///
/// Shape and strides are kept inside, unused places zero, so that a call can compare them in whole
/// words. The data are not touched by the view. Copies are independent; a view that is being
/// written must not be read by another thread.
class alignas(16) TensorView {
 public:
  /// What dim(0) of a view says that was made with more than 8 dimensions, or with strides of
  /// another number than dimensions; every call refuses it.
  static constexpr int64_t kUnrepresentable = INT64_MIN;

  /// No tensor: what an absent optional argument looks like.
  TensorView() noexcept = default;

  /// Row-major. More than 8 dimensions or a negative one make a view that every call refuses.
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape, Device device = {})
      : TensorView(data, dtype, std::span(shape.begin(), shape.size()), {}, device) {}
  TensorView(const void* data, DType dtype, std::initializer_list<int64_t> shape,
             Device device = {})
      : TensorView(const_cast<void*>(data), dtype, shape, device) {}

  /// With strides counted in elements; empty strides mean row-major.
  OPMUX_API TensorView(void* data, DType dtype, std::span<const int64_t> shape,
                       std::span<const int64_t> strides, Device device = {}) noexcept;

  /// Reads a C tensor; null strides mean row-major.
  OPMUX_API explicit TensorView(const opmux_tensor& tensor) noexcept;

  TensorView(const TensorView& other) noexcept { *this = other; }
  TensorView& operator=(const TensorView& other) noexcept {
    tensor_ = other.tensor_;
    keep_layout(other.layout());
    for (int i = 0; i < OPMUX_MAX_RANK; ++i) {
      shape_[i] = other.shape_[i];
      strides_[i] = other.strides_[i];
    }
    point_inside();
    return *this;
  }

  bool present() const noexcept { return tensor_.dtype.bits != 0; }
  /// The first element's address; on a device with handles, use c() instead.
  void* data() const noexcept { return static_cast<char*>(tensor_.data) + tensor_.byte_offset; }
  void set_data(void* data) noexcept {
    tensor_.data = data;
    tensor_.byte_offset = 0;
  }
  DType dtype() const noexcept {
    return {tensor_.dtype.code, tensor_.dtype.bits, tensor_.dtype.lanes};
  }
  /// Whether the first elements are the same memory.
  bool same_start(const TensorView& other) const noexcept {
    if (!has_handles(device())) return data() == other.data();
    return tensor_.data == other.tensor_.data && tensor_.byte_offset == other.tensor_.byte_offset;
  }
  Device device() const noexcept { return {tensor_.device.type, tensor_.device.id}; }
  int rank() const noexcept { return tensor_.ndim; }
  int64_t dim(int i) const noexcept { return shape_[i]; }
  int64_t stride(int i) const noexcept { return strides_[i]; }
  std::span<const int64_t> shape() const noexcept {
    return {shape_, static_cast<size_t>(tensor_.ndim)};
  }
  std::span<const int64_t> strides() const noexcept {
    return {strides_, static_cast<size_t>(tensor_.ndim)};
  }
  /// Number of elements: 1 for rank 0, the largest int64_t if the number does not fit.
  OPMUX_API int64_t elements() const noexcept;
  /// Row-major without gaps; dimensions of size 1 may have any stride.
  OPMUX_API bool contiguous() const noexcept;

  /// The C form; it points into this view.
  const opmux_tensor& c() const noexcept { return tensor_; }
  const int64_t* shape_words() const noexcept { return shape_; }
  const int64_t* stride_words() const noexcept { return strides_; }

  /// A number that views have in common only if element type, device, shape and strides are the
  /// same; 0 until a call gave one. Lets a call that meets a view again compare one word.
  uint64_t layout() const noexcept { return __atomic_load_n(&layout_, __ATOMIC_RELAXED); }
  void keep_layout(uint64_t number) const noexcept {
    __atomic_store_n(&layout_, number, __ATOMIC_RELAXED);
  }

 private:
  void point_inside() noexcept {
    tensor_.shape = shape_;
    tensor_.strides = strides_;
  }

  opmux_tensor tensor_{nullptr, {0, 0}, 0, {0, 0, 0}, shape_, strides_, 0};
  mutable uint64_t layout_ = 0;  ///< several threads may give one: all of theirs are right
  alignas(16) int64_t shape_[OPMUX_MAX_RANK]{};
  alignas(16) int64_t strides_[OPMUX_MAX_RANK]{};
};

}  // namespace opmux
