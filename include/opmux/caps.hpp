#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux {

/// Capabilities of an implementation, as data: the calls that it accepts. opmux checks them in each
/// decision, compiles them into the guards of cached plans, and prints the violated condition when
/// it refuses a call. Properties that are not mentioned are not restricted.
///
///   opmux::Caps caps = opmux::Caps{}
///                          .dtypes({opmux::f32, opmux::bf16})
///                          .multiple_of("H", 16)
///                          .contiguous()
///                          .cpu_features("avx2,fma");
///
/// Every function adds a condition; all of them must hold. Names are those of the schema of the
/// operator: Runtime::implement() refuses a name that the schema does not have. Functions return
/// `*this` for chaining and do not fail. A plain value: copy it freely.
class Caps {
 public:
  /// Allowed element types of an argument.
  struct DTypes {
    std::string arg;  ///< Empty: every tensor argument that no other entry names.
    std::vector<DType> allowed;
  };
  /// A condition on one dimension.
  struct Dim {
    std::string dim;                     ///< A named dimension, or "rows".
    uint32_t relation = OPMUX_AT_LEAST;  ///< OPMUX_AT_LEAST, _AT_MOST, _MULTIPLE_OF, _EQUALS.
    int64_t value = 0;
  };
  /// Conditions on one tensor argument.
  struct Tensor {
    std::string arg = {};     ///< Empty: every tensor argument.
    uint32_t flags = 0;       ///< OPMUX_TENSOR_*.
    int min_rank = 0;         ///< Fewest dimensions.
    int max_rank = 0;         ///< Most dimensions; 0: no limit.
    uint32_t alignment = 0;   ///< Of the first element, in bytes; 0: any.
    std::string layout = {};  ///< Stride order such as "0213"; empty: any.
  };
  /// Allowed values of a scalar argument.
  struct Scalar {
    std::string arg;
    std::vector<int64_t> allowed;
  };

  /// Allowed element types, for every tensor argument that has no entry with its name, or for one
  /// argument. Reason on refusal: "caps.dtype".
  Caps& dtypes(std::vector<DType> allowed) { return dtypes("", std::move(allowed)); }
  Caps& dtypes(std::string arg, std::vector<DType> allowed) {
    dtype_rules.push_back({std::move(arg), std::move(allowed)});
    return *this;
  }
  /// Conditions on a named dimension, or on "rows", the product of the leading dimensions. Reasons:
  /// "caps.multiple_of", "caps.at_least", "caps.at_most", "caps.equals".
  Caps& multiple_of(std::string dim, int64_t n) {
    return add_dim(std::move(dim), OPMUX_MULTIPLE_OF, n);
  }
  Caps& at_least(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_AT_LEAST, n); }
  Caps& at_most(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_AT_MOST, n); }
  Caps& equals(std::string dim, int64_t n) { return add_dim(std::move(dim), OPMUX_EQUALS, n); }
  /// Row-major without gaps, for one tensor argument or for all. Reason: "caps.contiguous". A
  /// policy may allow opmux to copy other tensors for such an implementation (`transforms`).
  Caps& contiguous(std::string arg = "") {
    return add_flag(std::move(arg), OPMUX_TENSOR_CONTIGUOUS);
  }
  /// The last dimension has stride 1; the others may have gaps. Reason: "caps.inner_contiguous".
  Caps& inner_contiguous(std::string arg = "") {
    return add_flag(std::move(arg), OPMUX_TENSOR_INNER_CONTIGUOUS);
  }
  /// absent: the implementation does not support this optional argument, so it is refused when the
  /// argument is given. present: it needs the argument. Reasons: "caps.absent", "caps.present".
  Caps& absent(std::string arg) { return add_flag(std::move(arg), OPMUX_TENSOR_ABSENT); }
  Caps& present(std::string arg) { return add_flag(std::move(arg), OPMUX_TENSOR_PRESENT); }
  /// Fewest and most dimensions of a tensor; with max 0 there is no upper limit. Reason:
  /// "caps.rank".
  Caps& rank(std::string arg, int min, int max) {
    tensor_rules.push_back({.arg = std::move(arg), .min_rank = min, .max_rank = max});
    return *this;
  }
  /// Alignment of the first element in bytes: a power of two, at most 4096. Reason:
  /// "caps.alignment".
  Caps& aligned(std::string arg, uint32_t bytes) {
    tensor_rules.push_back({.arg = std::move(arg), .alignment = bytes});
    return *this;
  }
  /// Order of the dimensions by falling stride, as digits: "0213" is BHSD for a schema in BSHD.
  /// Reason: "caps.layout".
  Caps& layout(std::string arg, std::string order) {
    tensor_rules.push_back({.arg = std::move(arg), .layout = std::move(order)});
    return *this;
  }
  /// Values of an int, bool (0/1) or enum (position) argument that the implementation supports. A
  /// scalar without an entry must be supported with every value. Reason: "caps.scalar".
  Caps& scalar(std::string arg, std::vector<int64_t> allowed) {
    scalar_rules.push_back({std::move(arg), std::move(allowed)});
    return *this;
  }
  /// CPU features that are all needed, comma separated, as /proc/cpuinfo names them: "avx2,fma".
  /// Replaces an earlier list. Reason: "caps.cpu_features".
  Caps& cpu_features(std::string needed) {
    features = std::move(needed);
    return *this;
  }
  /// Type of device that holds the tensors, OPMUX_DEVICE_*; the CPU by default. Reason:
  /// "caps.device".
  Caps& device(int32_t type) {
    device_type = type;
    return *this;
  }
  /// Range of device architectures, compared as dotted numbers; empty = open. Reason: "caps.arch".
  Caps& arch(std::string min, std::string max) {
    min_arch = std::move(min);
    max_arch = std::move(max);
    return *this;
  }
  /// Refused while the ambient fact `grad` is on. Reason: "caps.inference_only".
  Caps& inference_only() {
    no_grad = true;
    return *this;
  }

  /// The conditions as data; the functions above fill them in.
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
