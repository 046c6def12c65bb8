#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include <opmux/abi.h>
#include <opmux/tensor.hpp>

/// Encoding of arguments between the inline C++ API and the library: eight bytes for each value,
/// and one constant for each call site that holds the kinds. Programs do not use it by name; ArgTag
/// appears in ArgumentInfo.
namespace opmux {

/// Kinds of arguments. The numbers are those of OPMUX_ARG_* in abi.h.
enum class ArgTag : uint8_t {
  none = OPMUX_ARG_NONE,      ///< Absent.
  tensor = OPMUX_ARG_TENSOR,  ///< A TensorView, present or not.
  integer = OPMUX_ARG_I64,
  floating = OPMUX_ARG_F64,
  logical = OPMUX_ARG_BOOL,
  enumeration = OPMUX_ARG_ENUM,  ///< Position of a word in the enum of the schema.
  string = OPMUX_ARG_STR,
  integer_list = OPMUX_ARG_I64_LIST,
  tensor_list = OPMUX_ARG_TENSOR_LIST,
  constant = 15,  ///< A Constant; kernels receive a tensor.
};

/// Whether the value of an argument of this kind points to an opmux_list.
constexpr bool is_list(ArgTag tag) { return tag >= ArgTag::string && tag <= ArgTag::tensor_list; }

/// The value of one argument without its kind. A tensor pointer is never null: an absent tensor is
/// a view that is not present(). Strings and lists point to an opmux_list; a tensor list holds
/// `const TensorView* const`. The view of a Constant is a base of the object that owns its packed
/// copies.
union ArgValue {
  const TensorView* tensor;
  int64_t i64;
  double f64;
  const opmux_list* list;
};

/// Number and kinds of the arguments of one call site, in sixteen bytes. The C++ API computes it at
/// compile time; the C API builds it for each call.
class alignas(16) CallSite {
 public:
  constexpr CallSite() = default;
  constexpr CallSite(std::initializer_list<ArgTag> tags) {
    for (const ArgTag tag : tags) push(tag);
  }

  /// Appends an argument. At most OPMUX_MAX_ARGS; not checked.
  constexpr void push(ArgTag tag) {
    const uint32_t i = count();
    words_[i / 14] |= static_cast<uint64_t>(tag) << (4 * (i % 14));
    words_[0] += uint64_t{1} << 56;
    if (tag == ArgTag::constant) words_[0] |= kConstant;
  }
  /// Number of arguments, and the kind of argument i.
  constexpr uint32_t count() const { return static_cast<uint32_t>(words_[0] >> 56 & 63); }
  constexpr ArgTag tag(uint32_t i) const {
    return static_cast<ArgTag>(words_[i / 14] >> (4 * (i % 14)) & 15);
  }

  /// The same call site with CallOptions. It compares unequal to the original, so that plans cached
  /// without options are not used for it.
  constexpr CallSite with_options() const {
    CallSite site = *this;
    site.words_[0] |= kOptions;
    return site;
  }
  /// The same call site for a call through an Instance, whose view follows the arguments as one
  /// more value. It takes the path of calls with a Constant.
  constexpr CallSite with_instance() const {
    CallSite site = *this;
    site.words_[0] |= kConstant;
    site.words_[1] |= kInstance;
    return site;
  }
  constexpr bool has_instance() const { return (words_[1] & kInstance) != 0; }
  /// Replaces the kind of argument i. Only a call through an Instance may have a Constant there.
  constexpr void set_tag(uint32_t i, ArgTag kind) {
    words_[i / 14] ^= (static_cast<uint64_t>(tag(i)) ^ static_cast<uint64_t>(kind))
                      << (4 * (i % 14));
  }
  /// Whether an argument is a Constant, or the call goes through an Instance.
  constexpr bool has_constant() const { return (words_[0] & kConstant) != 0; }

  /// The whole site as one word if it has at most 14 arguments; from_word() is the inverse.
  constexpr uint64_t word() const { return words_[0]; }
  static constexpr CallSite from_word(uint64_t word) {
    CallSite site;
    site.words_[0] = word;
    return site;
  }

  friend constexpr bool operator==(const CallSite&, const CallSite&) = default;

 private:
  static constexpr uint64_t kOptions = uint64_t{1} << 63, kConstant = uint64_t{1} << 62;
  static constexpr uint64_t kInstance = uint64_t{1} << 63;  ///< in the second word
  uint64_t words_[2] = {0, 0};
};

}  // namespace opmux
