#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <opmux/tensor.hpp>

#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::verify {

/// Converts a row-major element number to the index in a tensor of this shape.
inline std::vector<int64_t> index_of(std::span<const int64_t> shape, size_t element) {
  std::vector<int64_t> index(shape.size());
  auto left = static_cast<int64_t>(element);
  for (size_t i = shape.size(); i > 0; --i) {
    index[i - 1] = left % shape[i - 1];
    left /= shape[i - 1];
  }
  return index;
}

/// True for f32, f16, bf16 and the floats of 8 bits.
bool is_float(DType dtype);
/// True if results of this type can be compared: these floats, bool, integers, and f4_e2m1fn_x2,
/// whose elements are bytes here.
bool comparable(DType dtype);
/// The largest relative error of rounding to a float type; 0 for other types.
double unit_roundoff(DType dtype);
/// The smallest positive number of the type; 1 for integers.
double smallest(DType dtype);
/// Half the distance between neighbouring numbers around `value`, the largest rounding error there.
double half_step(double value, DType dtype);

/// Rounds to nearest even, with overflow to infinity, or to the largest number of a type without
/// infinities. Clamps integers.
double rounded(double value, DType dtype);

/// Reads or writes one element. A written value must be representable in the type; see rounded().
double read_element(const std::byte* at, DType dtype);
void write_element(std::byte* at, DType dtype, double value);

/// The error bounds of one operator: how far a correct result may differ from the reference.
/// operators/NAME/tolerance.cpp defines those of a standard operator.
struct Bounds {
  std::string_view op;
  /// Sets the error bound of each output element for a correct computation in f32; see
  /// docs/dev/conformance.md. Bounds are zero on entry. Null: results must be exact.
  void (*bound)(const CallView& c, Expected& expected) = nullptr;
  /// True if later steps of the operator read the rounded output. The reference then runs with the
  /// output's dtype instead of f32. Null: never.
  bool (*sees_rounding)(const CallView& c, std::string_view output) = nullptr;
};

/// Returns the bounds of a standard operator. For operators without a tolerance.cpp, such as those
/// of plugins, returns a generic bound: 2^-10 of the largest element of the same output.
const Bounds& find_bounds(std::string_view op);

namespace operators {

/// The bounds of every folder of operators/ with a tolerance.cpp; the build generates this table.
std::vector<Bounds> standard_bounds();

}  // namespace operators

inline constexpr double kUnit = 0x1p-24;        ///< unit roundoff of f32
inline constexpr double kSmallest = 0x1p-126;   ///< smaller f32 values may be flushed to zero
inline constexpr double kFunction = 4 * kUnit;  ///< relative error of exp, erf, tanh, sqrt

/// The error of adding `count` terms in f32 in any order, relative to the sum of their magnitudes.
inline double sum_error(int64_t count) {
  const auto n = static_cast<double>(count);
  return kUnit * std::min(n, 4 * std::sqrt(n));
}

}  // namespace opmux::verify
