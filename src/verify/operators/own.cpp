#include <algorithm>
#include <cmath>

#include "verify/element.hpp"
#include "verify/operators/bounds.hpp"

/// Operators that the suite knows by their schema alone: those that plugins and programs bring.
/// For operators of which only the schema is known: those that plugins and programs bring.
namespace opmux::verify::operators {
namespace {

/// How far results may be from the reference's, relative to the largest of the same output.
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
