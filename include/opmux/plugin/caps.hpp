/// Capabilities of an implementation. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// What an implementation can do, as data that the host checks and explains. An empty argument name
/// means every tensor argument.
class Caps {
 public:
  Caps& dtypes(std::initializer_list<opmux_dtype> list) { return dtypes("", list); }
  Caps& dtypes(std::string_view arg, std::initializer_list<opmux_dtype> list) {
    dtype_lists_.emplace_back(list);
    dtypes_.push_back({sizeof(opmux_dtype_rule), uint32_t(list.size()), str(arg), nullptr});
    return *this;
  }
  Caps& at_least(std::string_view dim, int64_t n) { return rule(dim, OPMUX_AT_LEAST, n); }
  Caps& at_most(std::string_view dim, int64_t n) { return rule(dim, OPMUX_AT_MOST, n); }
  Caps& multiple_of(std::string_view dim, int64_t n) { return rule(dim, OPMUX_MULTIPLE_OF, n); }
  Caps& equals(std::string_view dim, int64_t n) { return rule(dim, OPMUX_EQUALS, n); }

  Caps& contiguous(std::string_view arg = "") { return tensor(arg, OPMUX_TENSOR_CONTIGUOUS); }
  Caps& inner_contiguous(std::string_view arg = "") {
    return tensor(arg, OPMUX_TENSOR_INNER_CONTIGUOUS);
  }
  Caps& must_be_absent(std::string_view arg) { return tensor(arg, OPMUX_TENSOR_ABSENT); }
  Caps& must_be_present(std::string_view arg) { return tensor(arg, OPMUX_TENSOR_PRESENT); }
  Caps& aligned(std::string_view arg, uint32_t bytes) { return tensor(arg, 0, 0, 0, bytes); }
  Caps& rank(std::string_view arg, int32_t min, int32_t max) { return tensor(arg, 0, min, max); }
  Caps& layout(std::string_view arg, std::string_view order) {
    return tensor(arg, 0, 0, 0, 0, order);
  }
  /// The values of an int, bool or enum argument that are honoured.
  Caps& scalar(std::string_view arg, std::initializer_list<int64_t> values) {
    scalar_lists_.emplace_back(values);
    scalars_.push_back({sizeof(opmux_scalar_rule), uint32_t(values.size()), str(arg), nullptr});
    return *this;
  }
  /// All needed, comma separated.
  Caps& cpu_features(std::string_view names) { return c_.cpu_features = str(names), *this; }
  Caps& arch(std::string_view min, std::string_view max) {
    c_.min_arch = str(min);
    c_.max_arch = str(max);
    return *this;
  }
  Caps& device_type(int32_t type) { return c_.device_type = type, *this; }
  Caps& inference_only() { return c_.flags |= OPMUX_CAPS_INFERENCE_ONLY, *this; }

  /// The C form; it points into this object, which must not move or change afterwards.
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
