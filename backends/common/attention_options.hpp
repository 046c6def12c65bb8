// The arguments that attention and paged_attention end with, and what they do to logits.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "backends/common/sum.hpp"

namespace opmux::backends {

// The logit of a key that is not seen.
inline constexpr float kExcluded = -std::numeric_limits<float>::infinity();

struct AttentionOptions {
  bool causal;
  float scale;
  int64_t window;
  float softcap;

  // From the product of a query and a key; `added` comes from the mask. A key that the mask excludes
  // is out even if its logit is NaN.
  float logit(float product, float added) const {
    float value = product * scale;
    if (softcap > 0) value = softcap * std::tanh(value / softcap);
    return added == kExcluded ? kExcluded : value + added;
  }
};

// Reads them from position `first` on, where causal, scale, window, sink and softcap stand. Not ok
// if softcap is negative or not finite.
inline int32_t read_attention_options(const plugin::Call& call, uint32_t first,
                                      bool causal_by_default, AttentionOptions& options) {
  const double size = double(std::max<int64_t>(1, call.tensor(1).dim(-1)));
  options.causal = call.boolean(first, causal_by_default);
  options.scale = float(call.f64(first + 1, 1 / std::sqrt(size)));
  options.window = call.i64(first + 2);
  options.softcap = float(call.f64(first + 4));
  if (options.softcap >= 0 && std::isfinite(options.softcap)) return OPMUX_OK;
  return plugin::invalid(
      call.error(), "attention.softcap",
      "softcap must be 0, for none, or a positive number, is " + std::to_string(options.softcap));
}

// Logits become weights, in place; `sink` is one more logit. False, and nothing is changed, if all
// keys are excluded.
inline bool weights_of_logits(float* logits, int64_t count, float sink) {
  if (std::all_of(logits, logits + count, [](float l) { return l == kExcluded; })) return false;
  // A NaN may or may not become the largest: the sum is NaN either way.
  const float largest = std::max(sink, *std::max_element(logits, logits + count));
  for (int64_t j = 0; j < count; ++j) logits[j] = std::exp(logits[j] - largest);
  const float sum = pairwise_sum(0, count, [&](int64_t j) { return logits[j]; });
  const float factor = 1 / (sum + std::exp(sink - largest));
  for (int64_t j = 0; j < count; ++j) logits[j] *= factor;
  return true;
}

}  // namespace opmux::backends
