// The arguments that attention and paged_attention end with, and what they do to logits.
#pragma once

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

  // From the product of a query and a key; `added` comes from the mask. A key that the mask
  // excludes is out even if its logit is NaN.
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
  return "softcap must be 0, for none, or a positive number, is " + std::to_string(value);
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
