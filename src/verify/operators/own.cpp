#include <algorithm>
#include <cmath>

#include "verify/bounds.hpp"
#include "verify/operators/bounds.hpp"

/// Generic bounds for operators that plugins and programs define; only their schema is known.
namespace opmux::verify::operators {
namespace {

/// Allowed difference from the reference, relative to the largest element of the same output.
constexpr double kTolerance = 0x1p-10;

void bound_own(const CallView&, Expected& expected) {
  for (ExpectedOutput& output : expected.outputs) {
    double largest = 0;
    for (const double value : output.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    output.bounds.assign(output.values.size(), largest * kTolerance);
  }
}

}  // namespace

Bounds own() { return {.op = "", .bound = bound_own}; }

}  // namespace opmux::verify::operators
