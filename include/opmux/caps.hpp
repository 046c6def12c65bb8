#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux {

/// What an implementation can do, as data: opmux checks it before every decision, compiles it into
/// guards, and prints it when it refuses. Whatever is not mentioned is not restricted.
///
///     opmux::Caps{}.dtypes({opmux::f32, opmux::bf16}).multiple_of("H", 16).contiguous()
///
/// Names are those of the operator's schema; a name it does not have is refused at registration.
class Caps {
 public:
  struct DTypes {
    std::string arg;  ///< empty: every tensor argument that no other entry names
    std::vector<DType> allowed;
  };
  struct Dim {
    std::string dim;  ///< a named dimension, or "rows"
    uint32_t relation = OPMUX_AT_LEAST;
    int64_t value = 0;
  };
  struct Tensor {
    std::string arg = {};  ///< empty: every tensor argument
    uint32_t flags = 0;    ///< OPMUX_TENSOR_*
    int min_rank = 0;
    int max_rank = 0;  ///< 0: no limit
    uint32_t alignment = 0;
    std::string layout = {};
  };
  struct Scalar {
    std::string arg;
    std::vector<int64_t> allowed;
  };

  /// Allowed element types of every tensor argument, or of one.
  Caps& dtypes(std::vector<DType> allowed) { return dtypes("", std::move(allowed)); }
  Caps& dtypes(std::string arg, std::vector<DType> allowed) {
    dtype_rules.push_back({std::move(arg), std::move(allowed)});
    return *this;
  }
  /// Conditions on a named dimension, or on "rows" (the product of the leading ones).
  Caps& multiple_of(std::string dim, int64_t n) {
    return add_dim(std::move(dim), OPMUX_MULTIPLE_OF, n);
  }
  Caps& at_least(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_AT_LEAST, n); }
  Caps& at_most(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_AT_MOST, n); }
  Caps& equals(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_EQUALS, n); }
  /// Row-major without gaps: every tensor argument, or one.
  Caps& contiguous(std::string arg = "") {
    return add_flag(std::move(arg), OPMUX_TENSOR_CONTIGUOUS);
  }
  /// The last dimension has stride 1.
  Caps& inner_contiguous(std::string arg = "") {
    return add_flag(std::move(arg), OPMUX_TENSOR_INNER_CONTIGUOUS);
  }
  /// An optional argument that is not honoured, or that must be given.
  Caps& absent(std::string arg) { return add_flag(std::move(arg), OPMUX_TENSOR_ABSENT); }
  Caps& present(std::string arg) { return add_flag(std::move(arg), OPMUX_TENSOR_PRESENT); }
  Caps& rank(std::string arg, int min, int max) {
    tensor_rules.push_back({.arg = std::move(arg), .min_rank = min, .max_rank = max});
    return *this;
  }
  /// Address of the first element, in bytes; a power of two, at most 4096.
  Caps& aligned(std::string arg, uint32_t bytes) {
    tensor_rules.push_back({.arg = std::move(arg), .alignment = bytes});
    return *this;
  }
  /// Order of the dimensions by falling stride, as digits: "0213" is BHSD for a schema in BSHD.
  Caps& layout(std::string arg, std::string order) {
    tensor_rules.push_back({.arg = std::move(arg), .layout = std::move(order)});
    return *this;
  }
  /// Values of an int, bool (0/1) or enum (position) argument that are honoured.
  Caps& scalar(std::string arg, std::vector<int64_t> allowed) {
    scalar_rules.push_back({std::move(arg), std::move(allowed)});
    return *this;
  }
  /// Features that the CPU must have, as the kernel names them: "avx2,fma".
  Caps& cpu_features(std::string needed) {
    features = std::move(needed);
    return *this;
  }
  Caps& device(int32_t type) {
    device_type = type;
    return *this;
  }
  /// Device architecture range, compared as dotted numbers; empty = open.
  Caps& arch(std::string min, std::string max) {
    min_arch = std::move(min);
    max_arch = std::move(max);
    return *this;
  }
  /// Refused while the ambient fact `grad` is on.
  Caps& inference_only() {
    no_grad = true;
    return *this;
  }

  std::vector<DTypes> dtype_rules;
  std::vector<Dim> dim_rules;
  std::vector<Tensor> tensor_rules;
  std::vector<Scalar> scalar_rules;
  std::string features;
  std::string min_arch, max_arch;
  int32_t device_type = OPMUX_DEVICE_CPU;
  bool no_grad = false;

 private:
  Caps& add_dim(std::string dim, uint32_t relation, int64_t value) {
    dim_rules.push_back({std::move(dim), relation, value});
    return *this;
  }
  Caps& add_flag(std::string arg, uint32_t flag) {
    tensor_rules.push_back({.arg = std::move(arg), .flags = flag});
    return *this;
  }
};

}  // namespace opmux
