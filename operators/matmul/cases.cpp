#include "conformance/shaper.hpp"
#include "operators/common/cases/product_sizes.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_matmul(Draft& draft) {
  shape_linear(draft, "N", "K");
  draft.dim("M") = draft.size_or_none(40);
  for (int64_t& size : draft.leading()) size = std::min<int64_t>(size, 3);
}

}  // namespace

Shaper matmul() { return {.op = "matmul", .shape = shape_matmul}; }

}  // namespace opmux::conformance::operators
