#include "conformance/shaper.hpp"
#include "operators/common/cases/indices.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_topk_softmax(Draft& draft) {
  draft.specials(Specials::nan_and_infinity);
  draft.dim("E") = draft.size(200);
  draft.dim("K") = draft.random().between(draft.random().chance(3) ? 0 : 1,
                                          std::min<int64_t>(draft.dim("E"), 12));
  draft.dtype("ids", draw_index_type(draft));
}

}  // namespace

Shaper topk_softmax() { return {.op = "topk_softmax", .shape = shape_topk_softmax}; }

}  // namespace opmux::conformance::operators
