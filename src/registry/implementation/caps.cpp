#include <opmux/implementation.hpp>

#include <utility>

namespace opmux {

Caps& Caps::dtypes(std::vector<DType> allowed) { return dtypes("", std::move(allowed)); }

Caps& Caps::dtypes(std::string arg, std::vector<DType> allowed) {
  dtype_rules.push_back({std::move(arg), std::move(allowed)});
  return *this;
}

Caps& Caps::multiple_of(std::string dim, int64_t n) {
  return add_dim(std::move(dim), OPMUX_MULTIPLE_OF, n);
}

Caps& Caps::at_least(std::string dim, int64_t n) {
  return add_dim(std::move(dim), OPMUX_AT_LEAST, n);
}

Caps& Caps::at_most(std::string dim, int64_t n) {
  return add_dim(std::move(dim), OPMUX_AT_MOST, n);
}

Caps& Caps::equals(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_EQUALS, n); }

Caps& Caps::contiguous(std::string arg) {
  return add_flag(std::move(arg), OPMUX_TENSOR_CONTIGUOUS);
}

Caps& Caps::inner_contiguous(std::string arg) {
  return add_flag(std::move(arg), OPMUX_TENSOR_INNER_CONTIGUOUS);
}

Caps& Caps::absent(std::string arg) { return add_flag(std::move(arg), OPMUX_TENSOR_ABSENT); }

Caps& Caps::present(std::string arg) { return add_flag(std::move(arg), OPMUX_TENSOR_PRESENT); }

Caps& Caps::rank(std::string arg, int min, int max) {
  tensor_rules.push_back({.arg = std::move(arg), .min_rank = min, .max_rank = max});
  return *this;
}

Caps& Caps::aligned(std::string arg, uint32_t bytes) {
  tensor_rules.push_back({.arg = std::move(arg), .alignment = bytes});
  return *this;
}

Caps& Caps::layout(std::string arg, std::string order) {
  tensor_rules.push_back({.arg = std::move(arg), .layout = std::move(order)});
  return *this;
}

Caps& Caps::scalar(std::string arg, std::vector<int64_t> allowed) {
  scalar_rules.push_back({std::move(arg), std::move(allowed)});
  return *this;
}

Caps& Caps::cpu_features(std::string needed) {
  features = std::move(needed);
  return *this;
}

Caps& Caps::device(int32_t type) {
  device_type = type;
  return *this;
}

Caps& Caps::arch(std::string min, std::string max) {
  min_arch = std::move(min);
  max_arch = std::move(max);
  return *this;
}

Caps& Caps::inference_only() {
  no_grad = true;
  return *this;
}

Caps& Caps::add_dim(std::string dim, uint32_t relation, int64_t value) {
  dim_rules.push_back({std::move(dim), relation, value});
  return *this;
}

Caps& Caps::add_flag(std::string arg, uint32_t flag) {
  tensor_rules.push_back({.arg = std::move(arg), .flags = flag});
  return *this;
}

}  // namespace opmux
