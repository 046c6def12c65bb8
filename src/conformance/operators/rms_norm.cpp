#include "conformance/operators/norm_error.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {
namespace {

void shape(Draft& draft) {
  draft.specials(Specials::nan);
  draw_eps(draft);
}

void bound(const Case& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const std::span<const double> x(c.tensor("x").values);
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  for (size_t at = 0; at < x.size(); at += width) {
    bound_rms_row(c, x.subspan(at, width), c.real("eps", 1e-6),
                  std::span(y.values).subspan(at, width), std::span(y.bounds).subspan(at, width));
  }
}

}  // namespace

Shaper rms_norm() { return {.op = "rms_norm", .shape = shape, .bound = bound}; }

}  // namespace opmux::conformance::operators
