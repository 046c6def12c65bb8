#include <algorithm>
#include <cmath>
#include <vector>

#include "verify/bounds.hpp"

namespace opmux::verify {
namespace {

/// Allowed difference from the reference, relative to the largest element of the same output.
constexpr double kTolerance = 0x1p-10;

void bound_generic(const CallView&, Expected& expected) {
  for (ExpectedOutput& output : expected.outputs) {
    double largest = 0;
    for (const double value : output.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    output.bounds.assign(output.values.size(), largest * kTolerance);
  }
}

}  // namespace

const Bounds& find_bounds(std::string_view op) {
  static const std::vector<Bounds> standard = operators::standard_bounds();
  /// For operators that plugins and programs define, of which only the schema is known.
  static const Bounds generic = {.op = "", .bound = bound_generic};
  const auto found = std::ranges::find(standard, op, &Bounds::op);
  return found == standard.end() ? generic : *found;
}

}  // namespace opmux::verify
