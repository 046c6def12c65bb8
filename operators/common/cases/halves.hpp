#pragma once

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

inline void shape_halves(Draft& draft) {
  draft.specials(Specials::nan);
  draft.dim("H2") = 2 * draft.dim("H");
}

}  // namespace opmux::conformance::operators
