#include "conformance/shaper.hpp"
#include "operators/common/cases/indices.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_embedding(Draft& draft) {
  draft.specials(Specials::nan_and_infinity);
  draft.dim("H") = draft.size(std::min<int64_t>(draft.budget() / 8, 2100));
  draft.dim("V") = draft.size(std::max<int64_t>(1, draft.budget() / draft.dim("H")));
  draft.dtype("ids", draw_index_type(draft));
}

void fill_embedding(Draft& draft) {
  fill_indices(draft, "ids", draft.dim("V"));
  spoil_index(draft, "ids", {draft.dim("V"), -1, draft.dim("V") + 12345});
}

}  // namespace

Shaper embedding() { return {.op = "embedding", .shape = shape_embedding, .fill = fill_embedding}; }

}  // namespace opmux::conformance::operators
