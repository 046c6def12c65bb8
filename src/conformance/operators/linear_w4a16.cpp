#include "conformance/element.hpp"
#include "conformance/operators/product.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_linear_w4a16(Draft& draft) {
  Random& random = draft.random();
  shape_linear(draft, "N", "KP");
  draft.dim("KP") = std::max<int64_t>(1, draft.dim("KP") / 2);
  const int64_t depth = draft.dim("K") = 2 * draft.dim("KP");
  int64_t groups = random.chance(30) ? 1 : random.between(1, depth);
  while (depth % groups != 0) --groups;
  draft.dim("G") = groups;
  draft.dtype("weight", u8);
  if (random.chance(60)) draft.dtype("zero_point", u8);
}

void fill_linear_w4a16(Draft& draft) {
  Random& random = draft.random();
  for (double& value : draft.tensor("weight").values) {
    value = static_cast<double>(random.below(256));
  }
  for (double& value : draft.tensor("scale").values) value = random.uniform(0.002, 0.2);
  if (!draft.has("zero_point")) return;
  for (double& value : draft.tensor("zero_point").values) {
    value = static_cast<double>(random.below(16));
  }
}

/// Sums of x * w * scale and of x * zero_point * scale may be kept apart, so the magnitudes are
/// those of both. The weight may be rounded to the dtype of x.
void bound_linear_w4a16(const Case& c, Expected& expected) {
  const CaseTensor &weight = c.tensor("weight"), &scale = c.tensor("scale");
  const int64_t depth = 2 * weight.shape[1], groups = scale.shape[1];
  const auto magnitude = [&](int64_t n, int64_t k) {
    const auto byte = static_cast<int>(weight.values[static_cast<size_t>((n * depth + k) / 2)]);
    const auto group = static_cast<size_t>(n * groups + k / (depth / groups));
    const double zero = c.has("zero_point") ? c.tensor("zero_point").values[group] : 8;
    return ((k % 2 == 0 ? byte & 15 : byte >> 4) + std::abs(zero)) * scale.values[group];
  };
  ExpectedOutput& y = expected.of(c, "y");
  bound_linear(c, c.tensor("x").values, depth, magnitude, y);
  const double narrow = c.tensor("x").dtype == f32 ? 0 : unit_roundoff(c.tensor("x").dtype);
  // sum_error(depth) + 2 units of the magnitudes are in the bound already.
  const double more = (narrow + 2 * kUnit) / (sum_error(depth) + 2 * kUnit);
  for (double& one : y.bounds) one *= 1 + more;
}

}  // namespace

Shaper linear_w4a16() {
  return {.op = "linear_w4a16",
          .shape = shape_linear_w4a16,
          .fill = fill_linear_w4a16,
          .bound = bound_linear_w4a16};
}

}  // namespace opmux::conformance::operators
