#pragma once

#include <string_view>

#include "conformance/draft.hpp"

namespace opmux::conformance {

/// What the suite must know of an operator beyond its schema. One file per operator.
struct Shaper {
  std::string_view op;
  /// Sets sizes, dtypes, presence and numbers that depend on each other.
  void (*shape)(Draft& draft) = nullptr;
  /// Sets values that are not just any numbers: positions, indices, masks. May be null.
  void (*fill)(Draft& draft) = nullptr;
  /// Named dimension of independent calls, for operators whose tensors have no "...".
  std::string_view batch = {};
};

/// That of the operator, or the one for operators that the suite knows by their schema alone.
const Shaper& find_shaper(std::string_view op);

}  // namespace opmux::conformance
