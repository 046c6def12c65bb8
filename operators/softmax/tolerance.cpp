#include <span>

#include "operators/common/tolerance/softmax_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

void bound_softmax_row(std::span<const double> x, double scale, std::span<const double> p,
                       std::span<double> bounds) {
  const std::vector<double> error = softmax_error(x, scale);
  for (size_t i = 0; i < x.size(); ++i) {
    // Masked elements are exactly zero. Elements that underflow may be flushed to zero.
    bounds[i] = std::isinf(x[i]) ? 0 : p[i] * error[i] + kSmallest;
  }
}

void bound_softmax(const CallView& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const std::span<const double> x(c.tensor("x").values);
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  for (size_t at = 0; at < x.size(); at += width) {
    bound_softmax_row(x.subspan(at, width), c.real("scale", 1),
                      std::span(y.values).subspan(at, width),
                      std::span(y.bounds).subspan(at, width));
  }
}

}  // namespace

Bounds softmax() { return {.op = "softmax", .bound = bound_softmax}; }

}  // namespace opmux::verify::operators
