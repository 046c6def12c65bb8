// The sampling parameters of `sample`, which the call passes as one tensor each.
#pragma once

#include <opmux/abi.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "backends/common/checked_indices.hpp"
#include "backends/common/integers.hpp"
#include "backends/common/rows.hpp"

namespace opmux::backends {

// Sampling parameters of one row.
struct Draw {
  float temperature = 1;
  int64_t top_k = 0;
  float top_p = 1;
  uint64_t seed = 0, offset = 0;

  bool filters() const { return top_k > 0 || top_p < 1; }
};

// Sampling parameters of all rows; an absent tensor is null.
struct Draws {
  const opmux_tensor *temperature, *top_k, *top_p, *seed, *offset;

  Draw of(int64_t row) const {
    return {number(temperature, row), whole(top_k, row), number(top_p, row),
            static_cast<uint64_t>(whole(seed, row)), static_cast<uint64_t>(whole(offset, row))};
  }

  Wrong wrong(int64_t rows) const {
    Wrong found;
    for (int64_t row = 0; !found && row < rows; ++row) found = wrong_row(row);
    return found;
  }

 private:
  static float number(const opmux_tensor* tensor, int64_t row) {
    return tensor ? element_at(*tensor, Rows(*tensor, 0).offset(row)) : 1;
  }
  static int64_t whole(const opmux_tensor* tensor, int64_t row) {
    return tensor ? integer_at(*tensor, Rows(*tensor, 0).offset(row)) : 0;
  }
  Wrong wrong_row(int64_t row) const {
    const Draw draw = of(row);
    const auto refusal = [&](const char* noun, float value, const char* rule) {
      return std::string(noun) + std::to_string(value) + " of row " + std::to_string(row) + rule;
    };
    if (!(draw.temperature >= 0) || std::isinf(draw.temperature)) {
      return {"sample.temperature",
              refusal("temperature ", draw.temperature, " is not a finite number >= 0")};
    }
    if (draw.top_p >= 0 && draw.top_p <= 1) return {};
    return {"sample.top_p", refusal("top_p ", draw.top_p, " is outside [0, 1]")};
  }
};

}  // namespace opmux::backends
