#include <cmath>

#include "conformance/shaper.hpp"
#include "operators/common/cases/indices.hpp"
#include "operators/common/cases/product_sizes.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_fused_moe(Draft& draft) {
  draft.dim("E") = draft.size(5);
  draft.dim("H") = draft.size(48);
  draft.dim("I") = draft.size(40);
  draft.dim("I2") = 2 * draft.dim("I");
  draft.dim("K") = draft.size(4);
  for (int64_t& size : draft.leading()) size = std::min<int64_t>(size, 6);
  draft.dtype("topk_ids", draw_index_type(draft));
}

/// Draws values of typical magnitude. A negative id selects no expert, whatever its weight.
void fill_fused_moe(Draft& draft) {
  Random& random = draft.random();
  const auto normal = [&](const char* name, double scale) {
    for (double& value : draft.tensor(name).values) value = random.normal() * scale;
  };
  normal("x", 1);
  normal("w1", 1 / std::sqrt(static_cast<double>(draft.dim("H"))));
  normal("w2", 1 / std::sqrt(static_cast<double>(draft.dim("I"))));
  CaseTensor &ids = draft.tensor("topk_ids"), &weights = draft.tensor("topk_weights");
  for (double& weight : weights.values) weight = random.unit();
  fill_indices(draft, "topk_ids", draft.dim("E"));
  const bool broadcast = std::ranges::find(ids.strides, 0) != ids.strides.end() ||
                         std::ranges::find(weights.strides, 0) != weights.strides.end();
  for (size_t i = 0; i < ids.values.size() && !broadcast; ++i) {
    if (!random.chance(10)) continue;
    ids.values[i] = -1;
    if (random.chance(50)) weights.values[i] = NAN;
  }
  spoil_index(draft, "topk_ids", {draft.dim("E"), draft.dim("E") + 9});
}

}  // namespace

Shaper fused_moe() { return {.op = "fused_moe", .shape = shape_fused_moe, .fill = fill_fused_moe}; }

}  // namespace opmux::conformance::operators
