#include "conformance/shaper.hpp"
#include "operators/common/cases/indices.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_rotary_embedding(Draft& draft) {
  Random& random = draft.random();
  draft.dim("D") = std::max<int64_t>(2, draft.size(256));
  draft.dim("R") =
      random.chance(60) ? draft.dim("D") / 2 * 2 : 2 * random.between(0, draft.dim("D") / 2);
  draft.dim("HQ") = draft.size(12);
  draft.dim("HKV") = draft.size(5);
  draft.dim("P") = draft.size(200);
  draft.dtype("positions", draw_index_type(draft));
}

void fill_rotary_embedding(Draft& draft) {
  const int64_t count = draft.dim("P");
  fill_indices(draft, "positions", count);
  spoil_index(draft, "positions", {count, -1, count + 1000});
}

}  // namespace

Shaper rotary_embedding() {
  return {.op = "rotary_embedding", .shape = shape_rotary_embedding, .fill = fill_rotary_embedding};
}

}  // namespace opmux::conformance::operators
