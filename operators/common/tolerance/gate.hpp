#pragma once

#include <cmath>

#include "verify/bounds.hpp"

namespace opmux::verify::operators {

/// Additional relative error that is allowed for the exponential if the result is rounded to 16
/// bits.
inline double shortened_function(DType dtype) { return dtype == f32 ? 0 : 0x1p-18; }

/// Calls set(gate, factor, y's value, y's bound) for every element of y.
template <class Set>
void for_each_gate(const CallView& c, Expected& expected, Set&& set) {
  ExpectedOutput& y = expected.of(c, "y");
  const std::vector<double>& x = c.tensor("x").values;
  const auto half = static_cast<size_t>(c.tensor("y").shape.back());
  for (size_t i = 0; i < y.values.size(); ++i) {
    const size_t at = i / half * 2 * half + i % half;
    set(x[at], x[at + half], y.values[i], y.bounds[i]);
  }
}

}  // namespace opmux::verify::operators
