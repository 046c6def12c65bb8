#include <numeric>

#include "conformance/shaper.hpp"
#include "operators/common/cases/eps.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_layer_norm(Draft& draft) {
  draft.specials(Specials::nan);
  draw_eps(draft);
}

}  // namespace

Shaper layer_norm() { return {.op = "layer_norm", .shape = shape_layer_norm}; }

}  // namespace opmux::conformance::operators
