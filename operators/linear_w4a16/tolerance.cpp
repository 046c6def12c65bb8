#include "operators/common/tolerance/product.hpp"
#include "verify/bounds.hpp"
#include "verify/small_floats.hpp"

namespace opmux::verify::operators {
namespace {

/// Implementations may sum x * w * scale and x * zero_point * scale separately, so the magnitudes
/// of both count. They may round the weight to the dtype of x.
void bound_linear_w4a16(const CallView& c, Expected& expected) {
  const Tensor &weight = c.tensor("weight"), &scale = c.tensor("scale");
  const int64_t depth = 2 * weight.shape[1], groups = scale.shape[1];
  const bool floats = weight.dtype == f4_e2m1fn_x2;
  const auto magnitude = [&](int64_t n, int64_t k) {
    const auto byte = static_cast<int>(weight.values[static_cast<size_t>((n * depth + k) / 2)]);
    const auto group = static_cast<size_t>(n * groups + k / (depth / groups));
    const int bits = k % 2 == 0 ? byte & 15 : byte >> 4;
    const double value = floats ? std::abs(decoded_e2m1(bits)) : bits;
    const double zero = c.has("zero_point") ? c.tensor("zero_point").values[group] : floats ? 0 : 8;
    return (value + std::abs(zero)) * scale.values[group];
  };
  ExpectedOutput& y = expected.of(c, "y");
  bound_linear(c, c.tensor("x").values, depth, magnitude, y);
  const double narrow = c.tensor("x").dtype == f32 ? 0 : unit_roundoff(c.tensor("x").dtype);
  // The bound already contains sum_error(depth) + 2 * kUnit of the magnitudes.
  const double more = (narrow + 2 * kUnit) / (sum_error(depth) + 2 * kUnit);
  for (double& one : y.bounds) one *= 1 + more;
}

}  // namespace

Bounds linear_w4a16() { return {.op = "linear_w4a16", .bound = bound_linear_w4a16}; }

}  // namespace opmux::verify::operators
