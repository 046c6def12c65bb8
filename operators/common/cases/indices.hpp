#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

inline DType draw_index_type(Draft& draft) { return draft.random().chance(50) ? i32 : i64; }

/// Fills a tensor with indices in [0, count).
inline void fill_indices(Draft& draft, const std::string& argument, int64_t count) {
  for (double& index : draft.tensor(argument).values) {
    index = static_cast<double>(draft.random().below(count));
  }
}

/// Occasionally replaces one index by one that the operator must refuse.
inline void spoil_index(Draft& draft, const std::string& argument,
                        std::initializer_list<int64_t> wrong) {
  CaseTensor& tensor = draft.tensor(argument);
  if (tensor.values.empty() || !draft.random().chance(4)) return;
  // Elements that share memory take the value of the first.
  const bool broadcast = std::ranges::find(tensor.strides, 0) != tensor.strides.end();
  const auto size = static_cast<int64_t>(tensor.values.size());
  const int64_t at = draft.random().below(broadcast ? 1 : size);
  tensor.values[static_cast<size_t>(at)] = static_cast<double>(draft.random().pick(wrong));
  draft.make_invalid();
}

}  // namespace opmux::conformance::operators
