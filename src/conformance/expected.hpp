#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"
#include "conformance/placed.hpp"

namespace opmux::conformance {

struct Shaper;

/// What one written tensor should hold: the reference's values, and how far from them the result of
/// a right implementation may be before it is rounded to the tensor's dtype.
struct ExpectedOutput {
  size_t argument = 0;
  std::vector<double> values, bounds;  ///< row-major

  /// The bound of every element is `relative` times its value.
  void bound_relative(double relative);
};

struct Expected {
  std::vector<ExpectedOutput> outputs;

  /// Of a tensor that is written; by the position of its argument.
  ExpectedOutput& of(const Case& c, std::string_view name);
};

/// Runs the reference, which must be what the thread's policy requires, and bounds the errors.
/// Fails with what the reference says if it does not take the case.
Result<Expected> expect(const Operator& op, const Shaper& shaper, const Case& c, Arenas& arenas);

/// The first element that is not what it should be. `got` holds the elements of each output.
std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got);

}  // namespace opmux::conformance
