// f32 sums whose rounding error grows with the logarithm of the length instead of the length.
#pragma once

#include <cstdint>

namespace opmux::backends {

// Adds term(i) for i in [first, first + count) pairwise. The order of additions depends only on
// count.
template <class Term>
float pairwise_sum(int64_t first, int64_t count, const Term& term) {
  constexpr int64_t kBlock = 32;
  if (count > kBlock) {
    const int64_t half = count / 2;
    return pairwise_sum(first, half, term) + pairwise_sum(first + half, count - half, term);
  }
  float sum = 0;
  for (int64_t i = first; i < first + count; ++i) sum += term(i);
  return sum;
}

}  // namespace opmux::backends
