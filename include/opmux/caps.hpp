#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/export.hpp>
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
  OPMUX_API Caps& dtypes(std::vector<DType> allowed);
  OPMUX_API Caps& dtypes(std::string arg, std::vector<DType> allowed);
  /// Conditions on a named dimension, or on "rows", the product of the leading dimensions. Reasons:
  /// "caps.multiple_of", "caps.at_least", "caps.at_most", "caps.equals".
  OPMUX_API Caps& multiple_of(std::string dim, int64_t n);
  OPMUX_API Caps& at_least(std::string dim, int64_t n);
  OPMUX_API Caps& at_most(std::string dim, int64_t n);
  OPMUX_API Caps& equals(std::string dim, int64_t n);
  /// Row-major without gaps, for one tensor argument or for all. Reason: "caps.contiguous". A
  /// policy may allow opmux to copy other tensors for such an implementation (`transforms`).
  OPMUX_API Caps& contiguous(std::string arg = "");
  /// The last dimension has stride 1; the others may have gaps. Reason: "caps.inner_contiguous".
  OPMUX_API Caps& inner_contiguous(std::string arg = "");
  /// absent: the implementation does not support this optional argument, so it is refused when the
  /// argument is given. present: it needs the argument. Reasons: "caps.absent", "caps.present".
  OPMUX_API Caps& absent(std::string arg);
  OPMUX_API Caps& present(std::string arg);
  /// Fewest and most dimensions of a tensor; with max 0 there is no upper limit. Reason:
  /// "caps.rank".
  OPMUX_API Caps& rank(std::string arg, int min, int max);
  /// Alignment of the first element in bytes: a power of two, at most 4096. Reason:
  /// "caps.alignment".
  OPMUX_API Caps& aligned(std::string arg, uint32_t bytes);
  /// Order of the dimensions by falling stride, as digits: "0213" is BHSD for a schema in BSHD.
  /// Reason: "caps.layout".
  OPMUX_API Caps& layout(std::string arg, std::string order);
  /// Values of an int, bool (0/1) or enum (position) argument that the implementation supports. A
  /// scalar without an entry must be supported with every value. Reason: "caps.scalar".
  OPMUX_API Caps& scalar(std::string arg, std::vector<int64_t> allowed);
  /// CPU features that are all needed, comma separated, as /proc/cpuinfo names them: "avx2,fma".
  /// Replaces an earlier list. Reason: "caps.cpu_features".
  OPMUX_API Caps& cpu_features(std::string needed);
  /// Type of device that holds the tensors, OPMUX_DEVICE_*; the CPU by default. Reason:
  /// "caps.device".
  OPMUX_API Caps& device(int32_t type);
  /// Range of device architectures, compared as dotted numbers; empty = open. Reason: "caps.arch".
  OPMUX_API Caps& arch(std::string min, std::string max);
  /// Refused while the ambient fact `grad` is on. Reason: "caps.inference_only".
  OPMUX_API Caps& inference_only();

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
  Caps& add_dim(std::string dim, uint32_t relation, int64_t value);
  Caps& add_flag(std::string arg, uint32_t flag);
};

}  // namespace opmux
