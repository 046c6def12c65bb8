#include "conformance/operators/norm_error.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_rms_norm(Draft& draft) {
  draft.specials(Specials::nan);
  draw_eps(draft);
}

void bound_rms_norm(const Case& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const std::span<const double> x(c.tensor("x").values);
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  for (size_t at = 0; at < x.size(); at += width) {
    bound_rms_row(c, x.subspan(at, width), c.real("eps", 1e-6),
                  std::span(y.values).subspan(at, width), std::span(y.bounds).subspan(at, width));
  }
}

}  // namespace

Shaper rms_norm() { return {.op = "rms_norm", .shape = shape_rms_norm, .bound = bound_rms_norm}; }

}  // namespace opmux::conformance::operators
