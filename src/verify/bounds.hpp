#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "verify/call_view.hpp"
#include "verify/expected.hpp"

namespace opmux::verify {

/// The error bounds of one operator: how far a correct result may differ from the reference. Each
/// operator has a file in verify/operators.
struct Bounds {
  std::string_view op;
  /// Sets the error bound of each output element for a correct computation in f32; see
  /// docs/dev/conformance.md. Bounds are zero on entry. Null: results must be exact.
  void (*bound)(const CallView& c, Expected& expected) = nullptr;
  /// True if later steps of the operator read the rounded output. The reference then runs with the
  /// output's dtype instead of f32. Null: never.
  bool (*sees_rounding)(const CallView& c, std::string_view output) = nullptr;
};

/// Returns the bounds of a standard operator. For other operators, of which only the schema is
/// known, returns a generic bound: 2^-10 of the largest element of the same output.
const Bounds& find_bounds(std::string_view op);

inline constexpr double kUnit = 0x1p-24;        ///< unit roundoff of f32
inline constexpr double kSmallest = 0x1p-126;   ///< smaller f32 values may be flushed to zero
inline constexpr double kFunction = 4 * kUnit;  ///< relative error of exp, erf, tanh, sqrt

/// The error of adding `count` terms in f32 in any order, relative to the sum of their magnitudes.
inline double sum_error(int64_t count) {
  const auto n = static_cast<double>(count);
  return kUnit * std::min(n, 4 * std::sqrt(n));
}

}  // namespace opmux::verify
