#include "operators/common/tolerance/norm_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// The sum of two f32 numbers has a single correct value, so the residual is exact. The norm is
/// computed from the residual as it is stored.
void bound_fused_add_rms_norm(const CallView& c, Expected& expected) {
  const std::span<const double> sum(expected.of(c, "residual").values);
  ExpectedOutput& x = expected.of(c, "x");
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  for (size_t at = 0; at < sum.size(); at += width) {
    bound_rms_row(c, sum.subspan(at, width), c.real("eps", 1e-6),
                  std::span(x.values).subspan(at, width), std::span(x.bounds).subspan(at, width));
  }
}

}  // namespace

Bounds fused_add_rms_norm() {
  return {.op = "fused_add_rms_norm",
          .bound = bound_fused_add_rms_norm,
          .sees_rounding = [](const CallView& c, std::string_view output) {
            return output == "residual" || (rounds_first(c) && !c.has("weight"));
          }};
}

}  // namespace opmux::verify::operators
