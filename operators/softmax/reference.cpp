#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/common/rows.hpp"
#include "backends/common/sum.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {

// A row in which every element is -inf (everything masked) becomes zeros. A NaN anywhere makes the
// whole row NaN.
void softmax_row(std::vector<float>& row, float scale) {
  float largest = -std::numeric_limits<float>::infinity();
  for (float& value : row) {
    value *= scale;
    largest = std::max(largest, value);
  }
  const float shift = largest == -std::numeric_limits<float>::infinity() ? 0 : largest;
  for (float& value : row) value = std::exp(value - shift);
  const float sum = pairwise_sum(0, int64_t(row.size()), [&](int64_t i) { return row[size_t(i)]; });
  const float factor = sum == 0 ? 0 : 1 / sum;
  for (float& value : row) value *= factor;
}

plugin::Impl softmax() {
  constexpr std::string_view kSignature =
      "softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)";
  return scalar("softmax", kSignature).run([](const plugin::Call& call) {
    const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
    std::vector<float> row(static_cast<size_t>(x.dim(-1)));
    const Rows from(x.c()), to(y.c());
    for (int64_t r = 0; r < from.count(); ++r) {
      load_row(x.c(), from.offset(r), x.dim(-1), row.data());
      softmax_row(row, float(call.f64(2, 1)));
      store_row(y.c(), to.offset(r), x.dim(-1), row.data());
    }
  });
}

}  // namespace opmux::backends::reference
