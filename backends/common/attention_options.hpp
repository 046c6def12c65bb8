// The trailing arguments that attention and paged_attention share, and the logit arithmetic they
// control.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "backends/common/sum.hpp"

namespace opmux::backends {

// Logit of a key that the query may not see.
inline constexpr float kExcluded = -std::numeric_limits<float>::infinity();

struct AttentionOptions {
  bool causal;
  float scale;
  int64_t window;
  float softcap;

  // Computes a logit from a query-key product; `added` is the mask's term. A key that the mask
  // excludes is excluded even if its logit is NaN.
  float logit(float product, float added) const {
    float value = product * scale;
    if (softcap > 0) value = softcap * std::tanh(value / softcap);
    return added == kExcluded ? kExcluded : value + added;
  }
};

inline float default_attention_scale(int64_t size) {
  return float(1 / std::sqrt(double(std::max<int64_t>(1, size))));
}

inline bool is_softcap(float value) { return value >= 0 && std::isfinite(value); }

inline std::string softcap_refusal(float value) {
  return "softcap must be 0 (disabled) or a positive number, got " + std::to_string(value);
}

// Converts logits to softmax weights in place; `sink` is one additional logit. Returns false and
// changes nothing if all keys are excluded.
inline bool weights_of_logits(float* logits, int64_t count, float sink) {
  if (std::all_of(logits, logits + count, [](float l) { return l == kExcluded; })) return false;
  // max_element may skip a NaN, but then the sum is NaN anyway.
  const float largest = std::max(sink, *std::max_element(logits, logits + count));
  for (int64_t j = 0; j < count; ++j) logits[j] = std::exp(logits[j] - largest);
  const float sum = pairwise_sum(0, count, [&](int64_t j) { return logits[j]; });
  const float factor = 1 / (sum + std::exp(sink - largest));
  for (int64_t j = 0; j < count; ++j) logits[j] *= factor;
  return true;
}

}  // namespace opmux::backends
