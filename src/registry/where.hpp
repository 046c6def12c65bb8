#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace opmux::registry {

/// One conjunct of `where`, in postfix order; integers only. Dimensions and integer arguments
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
    conditional,  ///< of three: the second if the first holds, else the third
  };
  struct Step {
    Op op = Op::constant;
    int index = 0;      ///< of the dimension or argument
    int64_t value = 0;  ///< of the constant

    friend constexpr auto operator<=>(const Step&, const Step&) = default;
  };

  std::vector<Step> steps;
  std::string text;  ///< canonical, for messages

  /// False also on overflow, division by zero, or a dimension that is not bound (-1), unless the
  /// other side of an && or || decides alone. `scalars` are indexed by argument; one that is
  /// INT64_MIN is not there.
  bool holds(std::span<const int64_t> dims, std::span<const int64_t> scalars) const;

  bool mentions(Op kind, int index) const;
};

/// The value of steps in postfix order; none where `holds` speaks of overflow and the like, or if
/// the steps make no expression.
std::optional<int64_t> evaluate(std::span<const WhereExpression::Step> steps,
                                std::span<const int64_t> dims, std::span<const int64_t> scalars);

}  // namespace opmux::registry
