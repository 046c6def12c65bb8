#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <opmux/abi.h>
#include <opmux/detail/export.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// An element type in DLPack's encoding: kind, bits of one lane, lanes (1, or 2 for f4_e2m1fn_x2,
/// whose elements are bytes with two numbers: the first in the low half, the second in the high
/// half; dimensions and strides count bytes). Use
/// the constants below rather than numbers.
///
///   opmux::DType dtype = opmux::parse_dtype("bf16");
///   std::cout << opmux::name_of(dtype) << ": " << dtype.size_bytes() << " bytes\n";
struct DType {
  uint8_t code = 0;  ///< OPMUX_DTYPE_*.
  uint8_t bits = 0;  ///< Of one lane; 0 in the DType of an absent tensor.
  uint16_t lanes = 1;

  friend constexpr bool operator==(DType, DType) = default;
  /// Bytes of one element, rounded up: 1 for types of less than 8 bits.
  constexpr int64_t size_bytes() const { return (int64_t{bits} * lanes + 7) / 8; }
  /// The type as one number, code | bits << 8 | lanes << 16, which is also the value of the fact
  /// OPMUX_FACT_DTYPE; from_packed() is the inverse.
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
inline constexpr DType f8_e4m3fn{OPMUX_DTYPE_FLOAT8_E4M3FN, 8};
inline constexpr DType f8_e4m3fnuz{OPMUX_DTYPE_FLOAT8_E4M3FNUZ, 8};
inline constexpr DType f8_e5m2{OPMUX_DTYPE_FLOAT8_E5M2, 8};
inline constexpr DType f8_e5m2fnuz{OPMUX_DTYPE_FLOAT8_E5M2FNUZ, 8};
inline constexpr DType f4_e2m1fn_x2{OPMUX_DTYPE_FLOAT4_E2M1FN, 4, 2};

/// "bf16", "f32", "i64", "bool", "f8_e5m2"; "7.8x1" (code, bits, lanes) for a type without a name.
OPMUX_API std::string name_of(DType dtype);
/// The inverse of name_of(); also reads torch's names of the 8-bit and 4-bit floats, such as
/// "float8_e4m3fn" and "float4_e2m1fn_x2". Returns a DType with bits 0 for an unknown name.
OPMUX_API DType parse_dtype(std::string_view word);

/// A device: DLPack's type number (OPMUX_DEVICE_*) and the index among devices of that type. The
/// default is the CPU.
struct Device {
  int32_t type = OPMUX_DEVICE_CPU;  ///< OPMUX_DEVICE_*.
  int32_t id = 0;                   ///< Index among devices of that type, from 0.
  friend constexpr bool operator==(Device, Device) = default;
};

/// Whether the data pointer of a tensor on this device is an opaque handle (a cl_mem, for example)
/// rather than an address. The first element is then at the handle plus the byte offset, and
/// pointer arithmetic on the handle is meaningless.
constexpr bool has_handles(Device device) {
  return device.type == OPMUX_DEVICE_OPENCL || device.type == OPMUX_DEVICE_VULKAN ||
         device.type == OPMUX_DEVICE_METAL || device.type == OPMUX_DEVICE_WEBGPU;
}

/// "cpu:0", "cuda:1"; "device300:0" for a type without a name.
OPMUX_API std::string name_of(Device device);
/// The inverse of name_of(); "cuda" means cuda:0. Also reads the aliases "hip" (rocm), "npu" and
/// "privateuseone" (ext_dev), "xpu" (oneapi) and "mps" (metal). Nullopt if the text names no
/// device.
OPMUX_API std::optional<Device> parse_device(std::string_view text);
/// Names a device type that a vendor defines, OPMUX_DEVICE_VENDOR to OPMUX_DEVICE_LAST, for the
/// whole process: policies, explain and commands use the name. Backends of plugins name theirs by
/// opmux_backend.device_name. Naming a type again in the same way changes nothing; another name, or
/// a name of another type, is refused ("device.name").
OPMUX_API Status name_device_type(int32_t type, std::string_view name);

/// A borrowed tensor: data pointer, element type, shape, strides, device. At most 8 dimensions.
///
///   std::vector<float> data(2 * 3);
///   opmux::TensorView rows(data.data(), opmux::f32, {2, 3});
///   const int64_t shape[] = {3, 2}, strides[] = {1, 3};
///   opmux::TensorView transposed(data.data(), opmux::f32, shape, strides);
///   std::cout << rows.contiguous() << transposed.contiguous() << "\n";  // prints 10
///
/// The view copies shape and strides and never reads the data, which must stay valid for as long as
/// calls use the view. Keep views next to the data and reuse them: a call whose views equal those
/// of the previous call takes the cheapest path.
///
/// Constructors do not fail. A view that cannot be represented (more than 8 dimensions, a number of
/// strides that differs from the rank) is refused by every call with `invalid_argument`.
///
/// Copies are independent. Several threads may read one view; a thread that modifies a view must be
/// alone with it.
class alignas(16) TensorView {
 public:
  /// dim(0) of a view that was constructed with more than 8 dimensions, or with a number of strides
  /// that differs from the number of dimensions. Every call refuses such a view.
  static constexpr int64_t kUnrepresentable = INT64_MIN;

  /// An absent tensor: present() is false. As an argument it equals opmux::none.
  TensorView() noexcept = default;

  /// A row-major tensor. `data` may be null where only the shape matters, as in explain() and
  /// bind(); a call refuses it (`schema.null_data`) if the tensor has elements. A negative
  /// dimension makes calls fail with `invalid_argument`.
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape, Device device = {})
      : TensorView(data, dtype, std::span(shape.begin(), shape.size()), {}, device) {}
  /// The same for read-only data. The view does not remember that the data are const: pass it only
  /// where the operator reads.
  TensorView(const void* data, DType dtype, std::initializer_list<int64_t> shape,
             Device device = {})
      : TensorView(const_cast<void*>(data), dtype, shape, device) {}

  /// A tensor with explicit strides, counted in elements. Empty strides mean row-major. Strides may
  /// be 0 (broadcast) or leave gaps; whether an implementation accepts that is checked on each
  /// call.
  OPMUX_API TensorView(void* data, DType dtype, std::span<const int64_t> shape,
                       std::span<const int64_t> strides, Device device = {}) noexcept;

  /// Copies a C tensor, its byte offset included; null strides mean row-major. The data stay
  /// borrowed.
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

  /// False for an absent tensor; the other functions then return zeros and nulls.
  bool present() const noexcept { return tensor_.dtype.bits != 0; }
  /// The address of the first element, byte offset included. On a device with handles use c(),
  /// whose `data` and `byte_offset` are separate.
  void* data() const noexcept { return static_cast<char*>(tensor_.data) + tensor_.byte_offset; }
  /// Points the view at other data of the same shape and sets the byte offset to 0. The only change
  /// that Plan::run_unchecked() allows between calls; it must not be null there.
  void set_data(void* data) noexcept {
    tensor_.data = data;
    tensor_.byte_offset = 0;
    if (data == nullptr) keep_layout(0);  // Calls look for null pointers in views without a number.
  }
  /// The element type.
  DType dtype() const noexcept {
    return {tensor_.dtype.code, tensor_.dtype.bits, tensor_.dtype.lanes};
  }
  /// Whether both views start at the same element of the same memory.
  bool same_start(const TensorView& other) const noexcept {
    if (!has_handles(device())) return data() == other.data();
    return tensor_.data == other.tensor_.data && tensor_.byte_offset == other.tensor_.byte_offset;
  }
  /// The device that holds the data.
  Device device() const noexcept { return {tensor_.device.type, tensor_.device.id}; }
  /// Number of dimensions; 0 for a scalar and for an absent tensor.
  int rank() const noexcept { return tensor_.ndim; }
  /// Size of dimension i, 0 <= i < 8; 0 beyond the rank. Not checked.
  int64_t dim(int i) const noexcept { return shape_[i]; }
  /// Stride of dimension i in elements; 0 beyond the rank. Not checked.
  int64_t stride(int i) const noexcept { return strides_[i]; }
  /// Sizes and strides of all dimensions. The spans are valid as long as this view.
  std::span<const int64_t> shape() const noexcept {
    return {shape_, static_cast<size_t>(tensor_.ndim)};
  }
  std::span<const int64_t> strides() const noexcept {
    return {strides_, static_cast<size_t>(tensor_.ndim)};
  }
  /// Number of elements: 1 for rank 0, 0 if a dimension is 0 or negative, INT64_MAX if the number
  /// does not fit.
  OPMUX_API int64_t elements() const noexcept;
  /// Whether the elements are row-major without gaps. Dimensions of size 1 may have any stride; a
  /// tensor without elements is contiguous.
  OPMUX_API bool contiguous() const noexcept;

  /// The same tensor as a C struct. It points to the shape and strides of this view, so it is valid
  /// until the view is destroyed, moved or assigned.
  const opmux_tensor& c() const noexcept { return tensor_; }
  /// All 8 places of shape and strides, unused ones zero; for opmux, which compares whole words.
  const int64_t* shape_words() const noexcept { return shape_; }
  const int64_t* stride_words() const noexcept { return strides_; }

  /// A number that two views share only if element type, device, shape and strides are equal; 0
  /// until a call assigned one, and after set_data(nullptr). opmux compares this word instead of
  /// the shape when a call sees a view again. Programs do not need it.
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
  mutable uint64_t layout_ = 0;  ///< Threads may race to assign it; each value is correct.
  alignas(16) int64_t shape_[OPMUX_MAX_RANK]{};
  alignas(16) int64_t strides_[OPMUX_MAX_RANK]{};
};

namespace dispatch {
class PackedConstant;
}

/// A tensor with an owner, for the `const` arguments of operators, such as the weight of `linear`.
/// An implementation may keep a packed copy of it (blocked for its kernels, for example): the first
/// call packs, later calls reuse the copy. A plain TensorView in the same place is never packed.
///
///   const opmux::Operator linear = runtime.op("linear").value();
///   std::vector<float> rows(64 * 64, 0.5f), x(4 * 64), y(4 * 64);
///   opmux::Constant weight =
///       runtime.constant(opmux::TensorView(rows.data(), opmux::f32, {64, 64})).value();
///   opmux::TensorView in(x.data(), opmux::f32, {4, 64}), out(y.data(), opmux::f32, {4, 64});
///   opmux::Status status = linear(out, in, weight);
///   rows[0] = 1;
///   weight.changed();  // the next call packs again
///   std::cout << status.to_string() << ", packed " << weight.packed_bytes() << " bytes\n";
///
/// Made by Runtime::constant(). It borrows the data, which must stay where they are and must not
/// change without changed(). Copies belong to this object, count towards Options::max_packed_bytes
/// and are freed with it; a copy beyond that limit is not made, and calls use the plain data.
///
/// Move-only. Calls may use one Constant from several threads. It must outlive the calls it is
/// passed to.
class Constant {
 public:
  /// Moves the packed copies along; arguments made by argument() stay valid. Do not use a
  /// moved-from Constant.
  OPMUX_API Constant(Constant&& other) noexcept;
  OPMUX_API Constant& operator=(Constant&& other) noexcept;
  /// Frees the packed copies. No call may be using this object.
  OPMUX_API ~Constant();

  /// The tensor as a plain view. Calls with it do not use packed copies.
  const TensorView& view() const noexcept { return *view_; }
  /// This constant as an argument of Operator::call_arguments() and the other functions that take
  /// opmux_arg. Valid while this object lives.
  OPMUX_API opmux_arg argument() const noexcept;

  /// Call this after the data were modified. Drops all packed copies; the next calls make new ones.
  /// A call that is running at the same time finishes with the copy it started with.
  OPMUX_API void changed();
  /// Number of calls to changed().
  OPMUX_API uint64_t version() const noexcept;
  /// Number of packed copies that exist now, at most one for each implementation, and their bytes.
  OPMUX_API size_t packs() const;
  OPMUX_API uint64_t packed_bytes() const;

  /// For Runtime::constant().
  OPMUX_API explicit Constant(detail::Shared<dispatch::PackedConstant> owner) noexcept;

 private:
  detail::Shared<dispatch::PackedConstant> owner_;
  const TensorView* view_;  ///< Points into the owner.
};

/// Tensor parameters of typed signatures (Op, Dispatchable): In is read, Out is written, InOut is
/// both. Each refers to a TensorView, which must outlive it; `->` reaches the view.
class In {
 public:
  /// Implicit, so that callers pass a TensorView where a signature has In, Out or InOut.
  In(const TensorView& view) : view_(&view) {}  // NOLINT(*-explicit-*)
  /// The view that was passed.
  const TensorView& view() const { return *view_; }
  const TensorView* operator->() const { return view_; }

 private:
  const TensorView* view_;
};
/// A tensor that the operator writes and does not read.
class Out : public In {
 public:
  using In::In;
};
/// A tensor that the operator reads and writes.
class InOut : public In {
 public:
  using In::In;
};

}  // namespace opmux
