#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Normalizes the sum as it was rounded and stored, so that a later layer that reads the residual
// sees the same values that were normalized here.
void run_fused_add_rms_norm(const plugin::Call& call) {
  const plugin::TensorArg x = call.tensor(0), residual = call.tensor(1);
  const int64_t hidden = x.dim(-1);
  const NormWeight weight(call, x);
  std::vector<float> row(static_cast<size_t>(hidden)), sum(static_cast<size_t>(hidden));
  const Rows x_rows(x.c()), residual_rows(residual.c());
  for (int64_t r = 0; r < x_rows.count(); ++r) {
    const int64_t x_at = x_rows.offset(r), residual_at = residual_rows.offset(r);
    load_row(x.c(), x_at, hidden, row.data());
    load_row(residual.c(), residual_at, hidden, sum.data());
    for (size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
    store_row(residual.c(), residual_at, hidden, sum.data());
    load_row(residual.c(), residual_at, hidden, sum.data());
    weight.normalize(sum, float(call.f64(3, 1e-6)));
    store_row(x.c(), x_at, hidden, sum.data());
  }
}

}  // namespace

plugin::Impl fused_add_rms_norm() {
  constexpr std::string_view kSignature =
      "fused_add_rms_norm(inout Tensor x[..., H], inout Tensor residual[..., H], "
      "Tensor? weight[H], float eps = 1e-6, bool round_before_weight = false)";
  return scalar("fused_add_rms_norm", kSignature).run(run_fused_add_rms_norm);
}

}  // namespace opmux::backends::reference
