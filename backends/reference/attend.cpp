#include "backends/reference/attend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "backends/common/sum.hpp"
#include "backends/reference/implementations.hpp"

namespace opmux::backends::reference {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

std::vector<Panel> panels_for(int64_t columns, int64_t depth) {
  return std::vector<Panel>(size_t((columns + kPanelWidth - 1) / kPanelWidth), Panel(depth));
}

}  // namespace

int32_t read_options(const plugin::Call& call, uint32_t first, bool causal_by_default,
                     AttendOptions& options) {
  const plugin::TensorArg q = call.tensor(1);
  const double size = double(std::max<int64_t>(1, q.dim(-1)));
  options.causal = call.boolean(first, causal_by_default);
  options.scale = float(call.f64(first + 1, 1 / std::sqrt(size)));
  options.window = call.i64(first + 2);
  options.sink = load_vector(call.optional_tensor(first + 3), q.dim(-2), kExcluded);
  options.softcap = float(call.f64(first + 4));
  if (options.softcap >= 0 && std::isfinite(options.softcap)) return OPMUX_OK;
  return plugin::invalid(
      call.error(), "attention.softcap",
      "softcap must be 0, for none, or a positive number, is " + std::to_string(options.softcap));
}

Attend::Attend(const AttendOptions& options, int64_t most_keys, int64_t key_size,
               int64_t value_size)
    : options_(options),
      key_size_(key_size),
      value_size_(value_size),
      key_panels_(panels_for(most_keys, key_size)),
      value_panels_(panels_for(value_size, most_keys)),
      logits_(key_panels_.size() * size_t(kPanelWidth)) {}

void Attend::multiply_keys(const float* q, const KeyRange& range) {
  for (int64_t j = range.first / kPanelWidth * kPanelWidth; j < range.last; j += kPanelWidth) {
    key_panels_[size_t(j / kPanelWidth)].weighted_sum(q, 0, key_size_, logits_.data() + j);
  }
}

// A key that the mask excludes is out even if its logit is NaN.
void Attend::mask(float& logit, float added) const {
  logit *= options_.scale;
  if (options_.softcap > 0) logit = options_.softcap * std::tanh(logit / options_.softcap);
  logit = added == kExcluded ? kExcluded : logit + added;
}

void Attend::weigh_values(const KeyRange& range, float sink, float* y) {
  float* weights = logits_.data() + range.first;
  const int64_t count = range.last - range.first;
  if (std::all_of(weights, weights + count, [](float l) { return l == kExcluded; })) {
    std::fill_n(y, value_size_, 0.0f);
    return;
  }
  // A NaN may or may not become the largest: the sum is NaN either way.
  const float largest = std::max(sink, *std::max_element(weights, weights + count));
  for (int64_t j = 0; j < count; ++j) weights[j] = std::exp(weights[j] - largest);
  const float sum = pairwise_sum(0, count, [&](int64_t j) { return weights[j]; });
  const float factor = 1 / (sum + std::exp(sink - largest));
  for (int64_t j = 0; j < count; ++j) weights[j] *= factor;
  float sums[kPanelWidth];
  for (int64_t d = 0; d < value_size_; d += kPanelWidth) {
    const Panel& panel = value_panels_[size_t(d / kPanelWidth)];
    panel.weighted_sum<true>(weights, range.first, count, sums);
    std::copy_n(sums, std::min(kPanelWidth, value_size_ - d), y + d);
  }
}

}  // namespace opmux::backends::reference
