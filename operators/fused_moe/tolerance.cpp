#include "operators/common/tolerance/product.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// A value and the bound of its error.
struct Rough {
  double value = 0, error = 0;
};

double activation(int64_t kind, double v) {
  if (kind == 0) return v / (1 + std::exp(-v));
  if (kind == 1) return v * std::erfc(-v / std::sqrt(2.0)) / 2;
  return v / (1 + std::exp(-2 * 0.7978845608028654 * (v + 0.044715 * v * v * v)));
}

/// The dot product of a row of weights and a vector with errors.
Rough product(const double* weight, const std::vector<Rough>& x) {
  Rough sum;
  double magnitude = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sum.value += weight[i] * x[i].value;
    sum.error += std::abs(weight[i]) * x[i].error;
    magnitude += std::abs(weight[i] * x[i].value);
  }
  sum.error += (sum_error(static_cast<int64_t>(x.size())) + 2 * kUnit) * magnitude;
  return sum;
}

/// Adds the error of rounding an intermediate value to the dtype of x, which is allowed.
Rough rounded_to(Rough rough, DType dtype) {
  if (dtype != f32) rough.error += unit_roundoff(dtype) * std::abs(rough.value) + smallest(dtype);
  return rough;
}

std::vector<Rough> expert(const CallView& c, size_t which, const std::vector<Rough>& x) {
  const Tensor &w1 = c.tensor("w1"), &w2 = c.tensor("w2");
  const auto inner = static_cast<size_t>(w2.shape[2]), outer = x.size();
  const double* first = w1.values.data() + which * 2 * inner * outer;
  const double* second = w2.values.data() + which * inner * outer;
  std::vector<Rough> hidden(inner), y(outer);
  for (size_t i = 0; i < inner; ++i) {
    const Rough gate = rounded_to(product(first + i * outer, x), c.tensor("x").dtype);
    const Rough up = rounded_to(product(first + (inner + i) * outer, x), c.tensor("x").dtype);
    const double active = activation(c.integer("activation", 0), gate.value);
    // The slope of every activation is at most 1.2.
    hidden[i] = {active * up.value, 1.2 * gate.error * std::abs(up.value) +
                                        std::abs(active) * up.error +
                                        (kFunction + 6 * kUnit) * std::abs(gate.value * up.value)};
    hidden[i] = rounded_to(hidden[i], c.tensor("x").dtype);
  }
  for (size_t i = 0; i < outer; ++i) {
    y[i] = rounded_to(product(second + i * inner, hidden), c.tensor("x").dtype);
  }
  return y;
}

void bound_fused_moe(const CallView& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  const auto choices = static_cast<size_t>(c.tensor("topk_ids").shape.back());
  for (size_t row = 0; row * width < y.values.size(); ++row) {
    std::vector<Rough> x(width);
    for (size_t i = 0; i < width; ++i) x[i].value = c.tensor("x").values[row * width + i];
    for (size_t k = row * choices; k < (row + 1) * choices; ++k) {
      const double id = c.tensor("topk_ids").values[k];
      if (id < 0) continue;
      const double weight = std::abs(c.tensor("topk_weights").values[k]);
      const std::vector<Rough> part = expert(c, static_cast<size_t>(id), x);
      for (size_t i = 0; i < width; ++i) {
        y.bounds[row * width + i] +=
            weight * (part[i].error + (sum_error(static_cast<int64_t>(choices)) + 2 * kUnit) *
                                          std::abs(part[i].value));
      }
    }
  }
}

}  // namespace

Bounds fused_moe() { return {.op = "fused_moe", .bound = bound_fused_moe}; }

}  // namespace opmux::verify::operators
