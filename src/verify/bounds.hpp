#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "verify/call_view.hpp"
#include "verify/expected.hpp"

namespace opmux::verify {

/// How far right results of an operator may be apart. One file per operator.
struct Bounds {
  std::string_view op;
  /// Of two right computations in f32; see docs/dev/conformance.md. Bounds are zero before. Null:
  /// results are exact.
  void (*bound)(const CallView& c, Expected& expected) = nullptr;
  /// Whether later steps of the operator see how an output was rounded: the reference is then run
  /// with its dtype, not with f32. Null: never.
  bool (*sees_rounding)(const CallView& c, std::string_view output) = nullptr;
};

/// That of the operator, or the one for operators of which only the schema is known: results may
/// be 2^-10 of the largest element of the same output away.
const Bounds& find_bounds(std::string_view op);

inline constexpr double kUnit = 0x1p-24;        ///< unit roundoff of f32
inline constexpr double kSmallest = 0x1p-126;   ///< below, f32 may be flushed to zero
inline constexpr double kFunction = 4 * kUnit;  ///< relative error of exp, erf, tanh, sqrt

/// Relative to the sum of magnitudes: the error of adding `count` terms in f32 in any order.
inline double sum_error(int64_t count) {
  const auto n = static_cast<double>(count);
  return kUnit * std::min(n, 4 * std::sqrt(n));
}

}  // namespace opmux::verify
