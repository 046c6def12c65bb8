#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include <opmux/abi.h>
#include <opmux/tensor.hpp>

/// How arguments travel from a call to the engine: eight bytes each, and one constant per place of
/// call that says what they are. Part of the inline C++ face; programs do not use it by name.
namespace opmux {

/// Kinds of arguments; the numbers of OPMUX_ARG_*.
enum class ArgTag : uint8_t {
  none = OPMUX_ARG_NONE,
  tensor = OPMUX_ARG_TENSOR,
  integer = OPMUX_ARG_I64,
  floating = OPMUX_ARG_F64,
  logical = OPMUX_ARG_BOOL,
  enumeration = OPMUX_ARG_ENUM,
  string = OPMUX_ARG_STR,
  integer_list = OPMUX_ARG_I64_LIST,
  tensor_list = OPMUX_ARG_TENSOR_LIST,
  constant = 15,  ///< a tensor with an owner; a kind of places of call only, kernels see a tensor
};

/// Whether an argument of this kind points to an opmux_list.
constexpr bool is_list(ArgTag tag) { return tag >= ArgTag::string && tag <= ArgTag::tensor_list; }

/// One argument without its kind. A tensor is never null: absent is a view that is not present().
/// String and lists point to an opmux_list; a tensor list holds `const TensorView* const`. The view
/// of a constant is the base of the object that owns its packed copies.
union ArgValue {
  const TensorView* tensor;
  int64_t i64;
  double f64;
  const opmux_list* list;
};

/// What a place of call passes: number and kinds of its arguments in sixteen bytes, fixed at
/// compile time for the C++ face.
class alignas(16) CallSite {
 public:
  constexpr CallSite() = default;
  constexpr CallSite(std::initializer_list<ArgTag> tags) {
    for (const ArgTag tag : tags) push(tag);
  }

  /// At most OPMUX_MAX_ARGS.
  constexpr void push(ArgTag tag) {
    const uint32_t i = count();
    words_[i / 14] |= static_cast<uint64_t>(tag) << (4 * (i % 14));
    words_[0] += uint64_t{1} << 56;
    if (tag == ArgTag::constant) words_[0] |= kConstant;
  }
  constexpr uint32_t count() const { return static_cast<uint32_t>(words_[0] >> 56 & 63); }
  constexpr ArgTag tag(uint32_t i) const {
    return static_cast<ArgTag>(words_[i / 14] >> (4 * (i % 14)) & 15);
  }

  /// The same place with options of the call besides its arguments: other plans serve it.
  constexpr CallSite with_options() const {
    CallSite site = *this;
    site.words_[0] |= kOptions;
    return site;
  }
  constexpr bool has_constant() const { return (words_[0] & kConstant) != 0; }

  /// All of it, if it has at most 14 arguments; and back.
  constexpr uint64_t word() const { return words_[0]; }
  static constexpr CallSite from_word(uint64_t word) {
    CallSite site;
    site.words_[0] = word;
    return site;
  }

  friend constexpr bool operator==(const CallSite&, const CallSite&) = default;

 private:
  static constexpr uint64_t kOptions = uint64_t{1} << 63, kConstant = uint64_t{1} << 62;
  uint64_t words_[2] = {0, 0};
};

}  // namespace opmux
