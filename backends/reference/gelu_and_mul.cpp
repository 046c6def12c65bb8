#include <cmath>
#include <numbers>

#include "backends/reference/implementations.hpp"

namespace opmux::backends::reference {
namespace {

// Both are written so that nothing cancels for large negative values: 1 + erf(v) is erfc(-v), and
// (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u)).
float gelu(float v) { return 0.5f * v * std::erfc(-v / std::numbers::sqrt2_v<float>); }

float gelu_tanh(float v) {
  constexpr float kSlope = 0.797884560802865f;  // sqrt(2 / pi)
  const float u = kSlope * (v + 0.044715f * v * v * v);
  return v / (1 + std::exp(-2 * u));
}

}  // namespace

plugin::Impl gelu_and_mul() {
  constexpr std::string_view kSignature =
      "gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2], "
      "enum{none, tanh} approximate = none) where H2 == 2 * H";
  return scalar("gelu_and_mul", kSignature).run([](const plugin::Call& call) {
    gate_rows(call.tensor(0), call.tensor(1), call.i64(2) == 1 ? gelu_tanh : gelu);
  });
}

}  // namespace opmux::backends::reference
