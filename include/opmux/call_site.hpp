#pragma once

#include <array>
#include <cstdint>

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
};

/// One argument without its kind. A tensor is never null: absent is a view that is not present().
/// String and lists point to an opmux_list; a tensor list holds `const TensorView* const`.
union ArgValue {
  const TensorView* tensor;
  int64_t i64;
  double f64;
  const opmux_list* list;
};

/// What a place of call passes: fixed at compile time for the C++ face.
struct CallSite {
  uint32_t count = 0;
  std::array<ArgTag, OPMUX_MAX_ARGS> tags{};

  friend constexpr bool operator==(const CallSite&, const CallSite&) = default;
};

}  // namespace opmux
