#include "operators/common/reference/shared.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/common/rows.hpp"
#include "backends/common/sum.hpp"

namespace opmux::backends::reference {

std::vector<float> load_vector(const plugin::TensorArg& vector, int64_t size, float if_absent) {
  std::vector<float> values(size_t(size), if_absent);
  if (vector) load_row(vector.c(), 0, size, values.data());
  return values;
}

std::vector<float> load_rows(const plugin::TensorArg& x) {
  const Rows rows(x.c());
  std::vector<float> values(static_cast<size_t>(rows.count() * x.dim(-1)));
  for (int64_t r = 0; r < rows.count(); ++r) {
    load_row(x.c(), rows.offset(r), x.dim(-1), values.data() + r * x.dim(-1));
  }
  return values;
}

void add_bias_and_store(const plugin::TensorArg& y, std::vector<float>& products,
                        const plugin::TensorArg& bias) {
  const std::vector<float> added = load_vector(bias, y.dim(-1), 0);
  const Rows to(y.c());
  for (int64_t r = 0; r < to.count(); ++r) {
    float* row = products.data() + r * y.dim(-1);
    for (size_t i = 0; bias && i < added.size(); ++i) row[i] += added[i];
    store_row(y.c(), to.offset(r), y.dim(-1), row);
  }
}

NormWeight::NormWeight(const plugin::Call& call, const plugin::TensorArg& x)
    : values_(load_vector(call.optional_tensor(2), x.dim(-1), 1)),
      round_first_(call.boolean(4)),
      dtype_(call.present(2) ? call.tensor(2).dtype() : x.dtype()) {}

void NormWeight::normalize(std::vector<float>& row, float eps) const {
  const auto square = [&](int64_t i) { return row[size_t(i)] * row[size_t(i)]; };
  const float mean = pairwise_sum(0, int64_t(row.size()), square) / float(row.size());
  const float factor = 1 / std::sqrt(mean + eps);
  for (float& value : row) value *= factor;
  if (round_first_) {
    with_element(dtype_, [&]<class T>(Tag<T>) {
      for (float& value : row) value = to_float(from_float<T>(value));
    });
  }
  for (size_t i = 0; i < row.size(); ++i) row[i] *= values_[i];
}

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

void gate_rows(const plugin::TensorArg& y, const plugin::TensorArg& x, float (*activation)(float)) {
  const size_t half = size_t(y.dim(-1));
  std::vector<float> row(2 * half);
  const Rows from(x.c()), to(y.c());
  for (int64_t r = 0; r < from.count(); ++r) {
    load_row(x.c(), from.offset(r), int64_t(2 * half), row.data());
    for (size_t i = 0; i < half; ++i) row[i] = activation(row[i]) * row[half + i];
    store_row(y.c(), to.offset(r), int64_t(half), row.data());
  }
}

}  // namespace opmux::backends::reference
