/// rms_norm/acme.scalar: an implementation of rms_norm for f32, and its capabilities.
#include <bit>
#include <cmath>

#include <opmux/plugin.hpp>

#ifndef ACME_VERSION
#define ACME_VERSION "0.1.0"
#endif

namespace op = opmux::plugin;

namespace {

constexpr const char* kSignature =
    "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6, "
    "bool round_before_weight = false)";

void normalise(float* y, const float* x, const float* weight, int64_t width, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += double{x[i]} * x[i];
  const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
  for (int64_t i = 0; i < width; ++i) {
    y[i] = static_cast<float>(x[i] * scale * (weight != nullptr ? weight[i] : 1));
  }
}

/// Arguments are in the order of the signature.
void run(const op::Call& call) {
  const op::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.optional_tensor(2);
  const int64_t width = x.dim(-1);
  const float* scale = weight ? weight.data<float>() : nullptr;
  for (int64_t at = 0; at < x.elements(); at += width) {
    normalise(y.data<float>() + at, x.data<float>() + at, scale, width, call.f64(3, 1e-6));
  }
}

/// Checks conditions that capabilities cannot express. Must be cheap and pure: it gets facts, not
/// data.
int32_t verify(const op::Facts& facts, opmux_error* why) {
  const auto eps = std::bit_cast<double>(facts.scalar("eps").value_or(0));
  if (eps > 0) return OPMUX_OK;
  return op::decline(why, "acme.eps", "eps must be above 0, a row of zeros has no norm");
}

op::Impl rms_norm() {
  return op::Impl{"rms_norm", "scalar"}
      .signature(kSignature)
      .caps(op::Caps{}.dtypes({op::f32}).contiguous().scalar("round_before_weight", {0}))
      .verify(verify, {{OPMUX_FACT_SCALAR, "eps"}})
      .flags(OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT)
      .run(run);
}

}  // namespace

OPMUX_PLUGIN_ENTRY(acme) {
  return op::answer(host, out, [] {
    return op::Plugin{"acme", ACME_VERSION}.add(
        op::Backend{"acme", OPMUX_KIND_VENDOR}.vendor("acme").add(rms_norm()));
  });
}
