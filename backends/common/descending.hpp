// The order in which the largest values of a row are taken.
#pragma once

#include <cstdint>
#include <limits>

namespace opmux::backends {

// NaN counts as -inf, so that every row of floats has an order.
inline float rank_value(float value) {
  return value == value ? value : -std::numeric_limits<float>::infinity();
}

// Larger values first, of equal ones that with the lower index.
struct Descending {
  const float* values;

  bool operator()(int64_t a, int64_t b) const {
    const float left = rank_value(values[a]), right = rank_value(values[b]);
    return left > right || (left == right && a < b);
  }
};

}  // namespace opmux::backends
