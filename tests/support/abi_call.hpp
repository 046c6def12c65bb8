// Calls implementations through the C ABI, as the host does: query function, backend, descriptor,
// opmux_call. Does not use the library; values are passed as double.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace opmux::testing {

inline constexpr opmux_dtype kF32{OPMUX_DTYPE_FLOAT, 32, 1};
inline constexpr opmux_dtype kF16{OPMUX_DTYPE_FLOAT, 16, 1};
inline constexpr opmux_dtype kBF16{OPMUX_DTYPE_BFLOAT, 16, 1};
inline constexpr opmux_dtype kI32{OPMUX_DTYPE_INT, 32, 1};
inline constexpr opmux_dtype kI64{OPMUX_DTYPE_INT, 64, 1};
inline constexpr opmux_dtype kI8{OPMUX_DTYPE_INT, 8, 1};
inline constexpr opmux_dtype kU8{OPMUX_DTYPE_UINT, 8, 1};
inline constexpr opmux_dtype kBool{OPMUX_DTYPE_BOOL, 8, 1};

// A binary float format; the arithmetic below uses only double and integers.
struct Format {
  int mantissa_bits;
  int exponent_bits;

  static Format of(opmux_dtype dtype) {
    if (dtype.code == OPMUX_DTYPE_BFLOAT) return {7, 8};
    return dtype.bits == 16 ? Format{10, 5} : Format{23, 8};
  }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  // Largest relative error of rounding to nearest.
  double half_ulp() const { return std::ldexp(1, -mantissa_bits - 1); }
  // Largest absolute error of rounding a subnormal.
  double half_smallest() const { return std::ldexp(1, -bias() - mantissa_bits); }

  double decode(uint32_t bits) const {
    const int exponent = int(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const double sign = bits >> (mantissa_bits + exponent_bits) & 1 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) {
      return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
    }
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return sign * std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias() - mantissa_bits);
  }
  // Rounds to nearest, ties to even.
  uint32_t encode(double value) const {
    const uint32_t sign = uint32_t(std::signbit(value)) << (mantissa_bits + exponent_bits);
    const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    if (std::isnan(value)) return sign | infinity | 1u << (mantissa_bits - 1);
    if (std::isinf(value)) return sign | infinity;
    if (value == 0) return sign;
    const int exponent = std::max(std::ilogb(value), 1 - bias());
    const double places = std::nearbyint(std::ldexp(std::fabs(value), mantissa_bits - exponent));
    // A carry out of the mantissa increments the exponent.
    const double bits = places + std::ldexp(exponent + bias() - 1, mantissa_bits);
    return bits >= infinity ? sign | infinity : sign | uint32_t(bits);
  }
};

// A tensor that owns its memory. Elements are numbered row-major whatever the strides; the gaps
// between them hold a pattern that intact() checks.
class Tensor {
 public:
  explicit Tensor(opmux_dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {},
                  int64_t first = 0)
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    if (strides_.empty()) strides_ = row_major(shape_);
    int64_t last = first;
    for (size_t i = 0; i < shape_.size(); ++i)
      last += std::max<int64_t>(0, shape_[i] - 1) * strides_[i];
    const size_t width = dtype.bits / 8u;
    bytes_.assign(size_t(last + 1) * width, kPattern);
    c_ = {bytes_.data(), {OPMUX_DEVICE_CPU, 0}, int32_t(shape_.size()), dtype,
          shape_.data(), strides_.data(),       uint64_t(first) * width};
  }
  Tensor(const Tensor& other) { *this = other; }
  Tensor& operator=(const Tensor& other) {
    shape_ = other.shape_;
    strides_ = other.strides_;
    bytes_ = other.bytes_;
    c_ = other.c_;
    c_.data = bytes_.data();
    c_.shape = shape_.data();
    c_.strides = strides_.data();
    return *this;
  }

  static std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * std::max<int64_t>(1, shape[i]);
    return strides;
  }

  const opmux_tensor& c() const { return c_; }
  opmux_dtype dtype() const { return c_.dtype; }
  int64_t dim(int i) const { return shape_[size_t(i < 0 ? i + c_.ndim : i)]; }
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : shape_) product *= size;
    return product;
  }
  double get(int64_t i) const {
    if (integral()) return double(load(i));
    return Format::of(c_.dtype).decode(uint32_t(load(i)));
  }
  void set(int64_t i, double value) {
    if (integral()) return store(i, uint64_t(int64_t(value)));
    store(i, Format::of(c_.dtype).encode(value));
  }
  uint64_t bits(int64_t i) const { return uint64_t(load(i)); }
  void set_bits(int64_t i, uint64_t bits) { store(i, bits); }
  Tensor& fill(const std::function<double(int64_t)>& value) {
    for (int64_t i = 0; i < elements(); ++i) set(i, value(i));
    return *this;
  }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  // Whether only elements were written.
  bool gaps_intact() const {
    Tensor copy = *this;
    for (int64_t i = 0; i < elements(); ++i) copy.store(i, 0);
    Tensor clean = *this;
    clean.bytes_.assign(bytes_.size(), kPattern);
    for (int64_t i = 0; i < elements(); ++i) clean.store(i, 0);
    return copy.bytes_ == clean.bytes_;
  }

 private:
  static constexpr unsigned char kPattern = 0xa5;

  bool integral() const {
    return c_.dtype.code != OPMUX_DTYPE_FLOAT && c_.dtype.code != OPMUX_DTYPE_BFLOAT;
  }
  size_t place(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = shape_.size(); d-- > 0;) {
      offset += i % shape_[d] * strides_[d];
      i /= shape_[d];
    }
    return size_t(offset) * (c_.dtype.bits / 8u) + c_.byte_offset;
  }
  int64_t load(int64_t i) const {
    int64_t value = 0;
    std::memcpy(&value, bytes_.data() + place(i), c_.dtype.bits / 8u);
    if (c_.dtype.code != OPMUX_DTYPE_INT) return value;
    const int unused = 64 - c_.dtype.bits;
    return int64_t(uint64_t(value) << unused) >> unused;
  }
  void store(int64_t i, uint64_t value) {
    std::memcpy(bytes_.data() + place(i), &value, c_.dtype.bits / 8u);
  }

  std::vector<int64_t> shape_, strides_;
  std::vector<unsigned char> bytes_;
  opmux_tensor c_{};
};

inline opmux_arg absent() { return {}; }
inline opmux_arg arg(const Tensor& tensor) {
  opmux_arg a{OPMUX_ARG_TENSOR, 0, {}, 0};
  a.value.tensor = &tensor.c();
  return a;
}
inline opmux_arg arg(const Tensor* tensor) { return tensor ? arg(*tensor) : absent(); }
inline opmux_arg arg(double value) {
  opmux_arg a{OPMUX_ARG_F64, 0, {}, 0};
  a.value.f64 = value;
  return a;
}
inline opmux_arg int_arg(int64_t value) {
  opmux_arg a{OPMUX_ARG_I64, 0, {}, 0};
  a.value.i64 = value;
  return a;
}
inline opmux_arg bool_arg(bool value) {
  opmux_arg a{OPMUX_ARG_BOOL, 0, {}, 0};
  a.value.i64 = value;
  return a;
}
inline opmux_arg enum_arg(int64_t position) {
  opmux_arg a{OPMUX_ARG_ENUM, 0, {}, 0};
  a.value.i64 = position;
  return a;
}

inline std::string_view view(opmux_str text) { return {text.data, text.size}; }

// An error sink with a buffer.
struct Sink {
  explicit Sink(size_t room = sizeof text) { c.text_capacity = room; }
  Sink(const Sink&) = delete;
  std::string message() const { return {text, c.text_size}; }
  std::string code() const { return std::string{view(c.code)}; }

  char text[512] = {};
  opmux_error c{sizeof(opmux_error), OPMUX_OK, text, sizeof text, 0, {}};
};

struct CallResult {
  int32_t outcome;
  std::string code;
  std::string text;
};

struct CallOptions {
  int32_t max_threads = 1;
  opmux_parallel_for_fn parallel_for = nullptr;
  void* pool = nullptr;
};

// Runs an implementation: plan, workspace, run, plan_free.
inline CallResult call(const opmux_impl& impl, const std::vector<opmux_arg>& args,
                       const CallOptions& options = {}) {
  Sink sink;
  opmux_call c{};
  c.struct_size = sizeof c;
  c.arg_count = uint32_t(args.size());
  c.arg_stride = sizeof(opmux_arg);
  c.max_threads = options.max_threads;
  c.args = args.data();
  c.device = {OPMUX_DEVICE_CPU, 0};
  c.error = &sink.c;
  c.parallel_for = options.parallel_for;
  c.pool = options.pool;
  if (impl.plan) {
    const int32_t outcome = impl.plan(impl.user_data, &c, &c.prepared);
    if (outcome != OPMUX_OK) return {outcome, sink.code(), sink.message()};
  }
  c.workspace_size = impl.workspace ? impl.workspace(impl.user_data, &c) : 0;
  std::vector<unsigned char> memory(c.workspace_size + 64);
  const size_t past = reinterpret_cast<uintptr_t>(memory.data()) % 64;
  c.workspace = memory.data() + (past ? 64 - past : 0);
  const int32_t outcome = impl.run(impl.user_data, &c);
  if (impl.plan && impl.plan_free) impl.plan_free(impl.user_data, c.prepared);
  return {outcome, sink.code(), sink.message()};
}

// The contents of a plugin, searchable by name.
class LoadedPlugin {
 public:
  explicit LoadedPlugin(opmux_plugin_query_fn query) {
    c_.struct_size = sizeof c_;
    if (query(nullptr, &c_) != OPMUX_OK) throw std::runtime_error("the query failed");
  }
  const opmux_plugin& c() const { return c_; }
  const opmux_backend& backend(uint32_t i = 0) const {
    return at(c_.backends, c_.backend_stride, i);
  }
  // Null if it does not exist.
  const opmux_impl* find(std::string_view op, std::string_view variant) const {
    for (uint32_t b = 0; b < c_.backend_count; ++b) {
      for (uint32_t i = 0; i < backend(b).impl_count; ++i) {
        const opmux_impl& impl = at(backend(b).impls, backend(b).impl_stride, i);
        if (view(impl.op) == op && view(impl.variant) == variant) return &impl;
      }
    }
    return nullptr;
  }
  template <class T>
  static const T& at(const T* first, uint32_t stride, uint32_t i) {
    return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + size_t{stride} * i);
  }

 private:
  opmux_plugin c_{};
};

}  // namespace opmux::testing
