#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace opmux::schema {

/// One conjunct of `where` as integer operations in postfix order. Dimensions and scalar arguments
/// (int, bool, enum) are read by index.
struct WhereExpression {
  static constexpr size_t kMaxSteps = 128;

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
    conditional,  ///< three operands: the second if the first is true, else the third
    // Only in conditions of policies. A float is the word of float_fact().
    real,     ///< a constant float
    to_real,  ///< the float of an integer; unknown if it is not exact
    equal_real,
    less_real,
    less_equal_real,
    greater_real,
    greater_equal_real,
  };
  struct Step {
    Op op = Op::constant;
    int index = 0;      ///< dimension or argument index
    int64_t value = 0;  ///< value of a constant

    friend constexpr auto operator<=>(const Step&, const Step&) = default;
  };

  std::vector<Step> steps;
  std::string text;  ///< canonical spelling, for messages

  /// Evaluates the condition. Overflow, division by zero, an unbound dimension (-1) and an absent
  /// scalar (INT64_MIN) make a result unknown, unless the other side of an && or || decides alone.
  /// Unknown counts as false. `scalars` are indexed by argument.
  bool holds(std::span<const int64_t> dims, std::span<const int64_t> scalars) const;

  bool mentions(Op kind, int index) const;
};

/// Evaluates steps in postfix order. Returns nullopt if the value is unknown, as described at
/// holds(), or if the steps are malformed.
std::optional<int64_t> evaluate(std::span<const WhereExpression::Step> steps,
                                std::span<const int64_t> dims, std::span<const int64_t> scalars);

}  // namespace opmux::schema
