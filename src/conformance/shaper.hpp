#pragma once

#include <string_view>

#include "conformance/draft.hpp"

namespace opmux::conformance {

/// Knowledge about an operator that its schema does not express. One file per operator.
struct Shaper {
  std::string_view op;
  /// Sets sizes, dtypes, presence and scalars that depend on each other.
  void (*shape)(Draft& draft) = nullptr;
  /// Sets values with a meaning: positions, indices, masks. May be null.
  void (*fill)(Draft& draft) = nullptr;
  /// Named dimension whose rows are independent, for operators without "...".
  std::string_view batch = {};
};

/// The shaper of an operator, or the generic one for operators that the suite does not know.
const Shaper& find_shaper(std::string_view op);

}  // namespace opmux::conformance
