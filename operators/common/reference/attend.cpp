#include "operators/common/reference/attend.hpp"

#include <algorithm>

#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

std::vector<Panel> panels_for(int64_t columns, int64_t depth) {
  return std::vector<Panel>(size_t((columns + kPanelWidth - 1) / kPanelWidth), Panel(depth));
}

}  // namespace

int32_t read_options(const plugin::Call& call, uint32_t first, bool causal_by_default,
                     AttendOptions& options) {
  const plugin::TensorArg sink = call.optional_tensor(first + 3);
  options.sink = load_vector(sink, call.tensor(1).dim(-2), kExcluded);
  options.causal = call.boolean(first, causal_by_default);
  options.scale = float(call.f64(first + 1, default_attention_scale(call.tensor(1).dim(-1))));
  options.window = call.i64(first + 2);
  options.softcap = float(call.f64(first + 4));
  if (is_softcap(options.softcap)) return OPMUX_OK;
  return plugin::invalid(call.error(), "attention.softcap", softcap_refusal(options.softcap));
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

void Attend::weigh_values(const KeyRange& range, float sink, float* y) {
  float* weights = logits_.data() + range.first;
  const int64_t count = range.last - range.first;
  if (!weights_of_logits(weights, count, sink)) {
    std::fill_n(y, value_size_, 0.0f);
    return;
  }
  float sums[kPanelWidth];
  for (int64_t d = 0; d < value_size_; d += kPanelWidth) {
    const Panel& panel = value_panels_[size_t(d / kPanelWidth)];
    panel.weighted_sum<true>(weights, range.first, count, sums);
    std::copy_n(sums, std::min(kPanelWidth, value_size_ - d), y + d);
  }
}

}  // namespace opmux::backends::reference
