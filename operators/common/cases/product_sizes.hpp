#pragma once

#include <algorithm>
#include <string>

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

/// Sets the sizes of a matrix product with `depth` terms per element, small enough for the
/// reference.
inline void shape_linear(Draft& draft, const std::string& width, const std::string& depth) {
  draft.specials(Specials::nan);
  const int64_t most = draft.budget() > 16384 ? 1200 : 160;
  draft.dim(depth) = draft.size_or_none(most);
  draft.dim(width) = draft.size_or_none(most / 2);
  const int64_t rows =
      std::max<int64_t>(1, 200000 / ((draft.dim(depth) + 1) * (draft.dim(width) + 1)));
  for (int64_t& size : draft.leading())
    size = std::min(size, draft.size(std::min<int64_t>(rows, 40)));
}

}  // namespace opmux::conformance::operators
