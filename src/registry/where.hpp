#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace opmux::registry {

/// One conjunct of `where`, in postfix order; integers only. Dimensions and integer arguments
/// (int, bool, enum) are read by index.
struct WhereExpression {
  enum class Op : uint8_t {
    constant,
    dim,
    scalar,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    negate,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    logical_and,
    logical_or,
    logical_not,
  };
  struct Step {
    Op op = Op::constant;
    int index = 0;      ///< of the dimension or argument
    int64_t value = 0;  ///< of the constant
  };

  std::vector<Step> steps;
  std::string text;  ///< canonical, for messages

  /// False also on overflow, division by zero, or a dimension that is not bound (-1).
  bool holds(std::span<const int64_t> dims, std::span<const int64_t> scalars) const;
};

}  // namespace opmux::registry
