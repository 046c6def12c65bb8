// Scalar part of topk_softmax: one row of router logits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opmux::backends::simd {

inline constexpr int64_t kMostExperts = 2048;  // Limited because a row is kept on the stack.

struct Experts {
  float ranks[kMostExperts];    // Logits with NaN replaced by -inf.
  float powers[kMostExperts];   // exp(logit - largest), not yet divided by the sum.
  int64_t order[kMostExperts];  // The selected experts come first, by descending rank.
  float weights[kMostExperts];  // Weights of the selected experts.
  float largest, sum;
  size_t count;
};

// Computes the weights of the selected experts in their order; with `renormalize`, divides them by
// their sum.
inline void take_weights(Experts& row, size_t chosen, bool renormalize) {
  const float share = row.sum == 0 ? 0 : 1 / row.sum;
  float sum = 0;
  for (size_t k = 0; k < chosen; ++k) sum += row.weights[k] = row.powers[row.order[k]] * share;
  if (!renormalize || sum == 0) return;
  for (size_t k = 0; k < chosen; ++k) row.weights[k] /= sum;
}

}  // namespace opmux::backends::simd
