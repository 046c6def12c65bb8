#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/draft.hpp"
#include "conformance/expected.hpp"

namespace opmux::conformance {

/// What the suite must know of an operator beyond its schema. One file per operator.
struct Shaper {
  std::string_view op;
  /// Sets sizes, dtypes, presence and numbers that depend on each other.
  void (*shape)(Draft& draft) = nullptr;
  /// Sets values that are not just any numbers: positions, indices, masks. May be null.
  void (*fill)(Draft& draft) = nullptr;
  /// How far two right computations in f32 may be apart; see docs/dev/conformance.md. Bounds
  /// are zero before.
  void (*bound)(const Case& c, Expected& expected) = nullptr;
  /// Whether later steps of the operator see how an output was rounded: the reference is then run
  /// with its dtype, not with f32. Null: never.
  bool (*sees_rounding)(const Case& c, std::string_view output) = nullptr;
  /// Named dimension of independent calls, for operators whose tensors have no "...".
  std::string_view batch = {};
};

/// That of the operator, or the one for operators that the suite knows by their schema alone.
const Shaper& find_shaper(std::string_view op);

inline constexpr double kUnit = 0x1p-24;        ///< unit roundoff of f32
inline constexpr double kSmallest = 0x1p-126;   ///< below, f32 may be flushed to zero
inline constexpr double kFunction = 4 * kUnit;  ///< relative error of exp, erf, tanh, sqrt

/// Relative to the sum of magnitudes: the error of adding `count` terms in f32 in any order.
inline double sum_error(int64_t count) {
  const auto n = static_cast<double>(count);
  return kUnit * std::min(n, 4 * std::sqrt(n));
}

}  // namespace opmux::conformance
