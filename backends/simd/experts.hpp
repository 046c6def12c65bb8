// One row of topk_softmax, outside of vector code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opmux::backends::simd {

inline constexpr int64_t kMostExperts = 2048;  // whose rows are kept on the stack

struct Experts {
  float ranks[kMostExperts];    // logits, NaN as -inf
  float powers[kMostExperts];   // the softmax before it is divided by the sum
  int64_t order[kMostExperts];  // the chosen ones first, by falling rank
  float weights[kMostExperts];  // of the chosen ones
  float largest, sum;
  size_t count;
};

// The weights of the chosen experts, in their order; divided by their sum on request.
inline void take_weights(Experts& row, size_t chosen, bool renormalize) {
  const float share = row.sum == 0 ? 0 : 1 / row.sum;
  float sum = 0;
  for (size_t k = 0; k < chosen; ++k) sum += row.weights[k] = row.powers[row.order[k]] * share;
  if (!renormalize || sum == 0) return;
  for (size_t k = 0; k < chosen; ++k) row.weights[k] /= sum;
}

}  // namespace opmux::backends::simd
