#include <cmath>

#include "backends/common/rows.hpp"
#include "backends/common/sum.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Two passes: the variance is computed from the centred values, so that a large mean costs no
// precision. It is the biased variance (divided by H).
void normalize(std::vector<float>& row, const std::vector<float>& weight,
               const std::vector<float>& bias, float eps) {
  const int64_t size = int64_t(row.size());
  const float mean = pairwise_sum(0, size, [&](int64_t i) { return row[size_t(i)]; }) / float(size);
  for (float& value : row) value -= mean;
  const auto square = [&](int64_t i) { return row[size_t(i)] * row[size_t(i)]; };
  const float factor = 1 / std::sqrt(pairwise_sum(0, size, square) / float(size) + eps);
  for (size_t i = 0; i < row.size(); ++i) row[i] = row[i] * factor * weight[i] + bias[i];
}

void run_layer_norm(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const int64_t hidden = x.dim(-1);
  const std::vector<float> weight = load_vector(call.optional_tensor(2), hidden, 1);
  const std::vector<float> bias = load_vector(call.optional_tensor(3), hidden, 0);
  std::vector<float> row(static_cast<size_t>(hidden));
  const Rows from(x.c()), to(y.c());
  for (int64_t r = 0; r < from.count(); ++r) {
    load_row(x.c(), from.offset(r), hidden, row.data());
    normalize(row, weight, bias, float(call.f64(4, 1e-5)));
    store_row(y.c(), to.offset(r), hidden, row.data());
  }
}

}  // namespace

plugin::Impl layer_norm() {
  constexpr std::string_view kSignature =
      "layer_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], Tensor? bias[H], "
      "float eps = 1e-5)";
  return scalar("layer_norm", kSignature).run(run_layer_norm);
}

}  // namespace opmux::backends::reference
