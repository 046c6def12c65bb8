#include "operators/common/tolerance/norm_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

void bound_rms_norm(const CallView& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const std::span<const double> x(c.tensor("x").values);
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  for (size_t at = 0; at < x.size(); at += width) {
    bound_rms_row(c, x.subspan(at, width), c.real("eps", 1e-6),
                  std::span(y.values).subspan(at, width), std::span(y.bounds).subspan(at, width));
  }
}

}  // namespace

Bounds rms_norm() { return {.op = "rms_norm", .bound = bound_rms_norm}; }

}  // namespace opmux::verify::operators
