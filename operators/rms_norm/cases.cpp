#include "conformance/shaper.hpp"
#include "operators/common/cases/eps.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_rms_norm(Draft& draft) {
  draft.specials(Specials::nan);
  draw_eps(draft);
}

}  // namespace

Shaper rms_norm() { return {.op = "rms_norm", .shape = shape_rms_norm}; }

}  // namespace opmux::conformance::operators
