// The order in which the largest values of a row are selected.
#pragma once

#include <cstdint>
#include <limits>

namespace opmux::backends {

// NaN counts as -inf, so that every row of floats has a total order.
inline float rank_value(float value) {
  return value == value ? value : -std::numeric_limits<float>::infinity();
}

// Sorts larger values first; equal values keep the order of their indices.
struct Descending {
  const float* values;

  bool operator()(int64_t a, int64_t b) const {
    const float left = rank_value(values[a]), right = rank_value(values[b]);
    return left > right || (left == right && a < b);
  }
};

}  // namespace opmux::backends
