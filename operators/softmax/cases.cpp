#include <span>

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_softmax(Draft& draft) {
  draft.specials(Specials::nan_and_infinity);
  if (draft.random().chance(60)) {
    draft.set("scale", draft.random().pick({1.0, 0.125, 0.08838834764, 2.5}));
  }
}

}  // namespace

Shaper softmax() { return {.op = "softmax", .shape = shape_softmax}; }

}  // namespace opmux::conformance::operators
