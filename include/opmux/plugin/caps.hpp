/// Capabilities of an implementation. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// Capabilities as data that the host checks and explains. Every function adds a condition, and all
/// must hold. An empty argument name means every tensor argument; names are those of the schema.
///
///   namespace op = opmux::plugin;
///   op::Caps caps = op::Caps{}
///                       .dtypes({op::f32, op::bf16})
///                       .multiple_of("H", 16)
///                       .inner_contiguous()
///                       .must_be_absent("bias");
///
/// Functions return *this for chaining. Texts are borrowed; lists are copied.
class Caps {
 public:
  /// Allowed element types, for all tensor arguments without an entry of their name, or for one.
  Caps& dtypes(std::initializer_list<opmux_dtype> list) { return dtypes("", list); }
  Caps& dtypes(std::string_view arg, std::initializer_list<opmux_dtype> list) {
    dtype_lists_.emplace_back(list);
    dtypes_.push_back({sizeof(opmux_dtype_rule), uint32_t(list.size()), str(arg), nullptr});
    return *this;
  }
  /// Conditions on a named dimension, or on "rows", the product of the leading dimensions.
  Caps& at_least(std::string_view dim, int64_t n) { return rule(dim, OPMUX_AT_LEAST, n); }
  Caps& at_most(std::string_view dim, int64_t n) { return rule(dim, OPMUX_AT_MOST, n); }
  Caps& multiple_of(std::string_view dim, int64_t n) { return rule(dim, OPMUX_MULTIPLE_OF, n); }
  Caps& equals(std::string_view dim, int64_t n) { return rule(dim, OPMUX_EQUALS, n); }

  /// contiguous: row-major without gaps. inner_contiguous: only the last dimension has stride 1.
  Caps& contiguous(std::string_view arg = "") { return tensor(arg, OPMUX_TENSOR_CONTIGUOUS); }
  Caps& inner_contiguous(std::string_view arg = "") {
    return tensor(arg, OPMUX_TENSOR_INNER_CONTIGUOUS);
  }
  /// Optional arguments that are not supported, and those that are needed.
  Caps& must_be_absent(std::string_view arg) { return tensor(arg, OPMUX_TENSOR_ABSENT); }
  Caps& must_be_present(std::string_view arg) { return tensor(arg, OPMUX_TENSOR_PRESENT); }
  /// Alignment of the first element in bytes, a power of two up to 4096.
  Caps& aligned(std::string_view arg, uint32_t bytes) { return tensor(arg, 0, 0, 0, bytes); }
  /// Fewest and most dimensions; max 0 means no upper limit.
  Caps& rank(std::string_view arg, int32_t min, int32_t max) { return tensor(arg, 0, min, max); }
  /// Order of the dimensions by falling stride, as digits: "0213".
  Caps& layout(std::string_view arg, std::string_view order) {
    return tensor(arg, 0, 0, 0, 0, order);
  }
  /// Values of an int, bool (0/1) or enum (position) argument that are supported.
  Caps& scalar(std::string_view arg, std::initializer_list<int64_t> values) {
    scalar_lists_.emplace_back(values);
    scalars_.push_back({sizeof(opmux_scalar_rule), uint32_t(values.size()), str(arg), nullptr});
    return *this;
  }
  /// CPU features that are all needed, comma separated, as in /proc/cpuinfo: "avx2,fma".
  Caps& cpu_features(std::string_view names) { return c_.cpu_features = str(names), *this; }
  /// Range of device architectures, compared as numbers with dots between them; empty = open. A
  /// device whose backend states no architecture is refused ("caps.arch").
  Caps& arch(std::string_view min, std::string_view max) {
    c_.min_arch = str(min);
    c_.max_arch = str(max);
    return *this;
  }
  /// OPMUX_DEVICE_* of the tensors, if it differs from the backend.
  Caps& device_type(int32_t type) { return c_.device_type = type, *this; }
  /// Refused while the ambient fact `grad` is on.
  Caps& inference_only() { return c_.flags |= OPMUX_CAPS_INFERENCE_ONLY, *this; }

  /// The C form. It points into this object, which must not move or change afterwards. For Impl.
  const opmux_caps* c() {
    for (size_t i = 0; i < dtypes_.size(); ++i) dtypes_[i].dtypes = dtype_lists_[i].data();
    for (size_t i = 0; i < scalars_.size(); ++i) scalars_[i].values = scalar_lists_[i].data();
    c_.struct_size = sizeof c_;
    publish(dtypes_, c_.dtypes, c_.dtype_count, c_.dtype_stride);
    publish(dims_, c_.dims, c_.dim_count, c_.dim_stride);
    publish(tensors_, c_.tensors, c_.tensor_count, c_.tensor_stride);
    publish(scalars_, c_.scalars, c_.scalar_count, c_.scalar_stride);
    return &c_;
  }
  /// Points a C array field with its count and stride at a vector.
  template <class T>
  static void publish(const std::vector<T>& from, const T*& first, uint32_t& count,
                      uint32_t& stride) {
    first = from.data();
    count = uint32_t(from.size());
    stride = sizeof(T);
  }

 private:
  Caps& rule(std::string_view dim, uint32_t relation, int64_t value) {
    dims_.push_back({sizeof(opmux_dim_rule), str(dim), relation, value});
    return *this;
  }
  Caps& tensor(std::string_view arg, uint32_t flags, int32_t min = 0, int32_t max = 0,
               uint32_t alignment = 0, std::string_view order = "") {
    tensors_.push_back(
        {sizeof(opmux_tensor_rule), flags, str(arg), min, max, alignment, 0, str(order)});
    return *this;
  }

  opmux_caps c_{};
  std::vector<opmux_dtype_rule> dtypes_;
  std::vector<std::vector<opmux_dtype>> dtype_lists_;
  std::vector<opmux_dim_rule> dims_;
  std::vector<opmux_tensor_rule> tensors_;
  std::vector<opmux_scalar_rule> scalars_;
  std::vector<std::vector<int64_t>> scalar_lists_;
};

}  // namespace opmux::plugin
