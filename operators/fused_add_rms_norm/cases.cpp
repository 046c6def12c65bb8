#include "conformance/shaper.hpp"
#include "operators/common/cases/eps.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_fused_add_rms_norm(Draft& draft) {
  draft.specials(Specials::nan);
  draw_eps(draft);
}

}  // namespace

Shaper fused_add_rms_norm() {
  return {.op = "fused_add_rms_norm", .shape = shape_fused_add_rms_norm};
}

}  // namespace opmux::conformance::operators
