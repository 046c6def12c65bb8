#pragma once

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

inline void draw_eps(Draft& draft) {
  if (draft.has("eps") || draft.random().chance(60)) {
    draft.set("eps", draft.random().pick({1e-6, 1e-5, 1e-12, 1e-3, 0.25}));
  }
}

}  // namespace opmux::conformance::operators
