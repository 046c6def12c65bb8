#include "conformance/shaper.hpp"
#include "operators/common/cases/product_sizes.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_linear_w4a16(Draft& draft) {
  Random& random = draft.random();
  shape_linear(draft, "N", "KP");
  draft.dim("KP") = std::max<int64_t>(1, draft.dim("KP") / 2);
  const int64_t depth = draft.dim("K") = 2 * draft.dim("KP");
  int64_t groups = random.chance(30) ? 1 : random.between(1, depth);
  while (depth % groups != 0) --groups;
  draft.dim("G") = groups;
  const bool floats = random.chance(40);
  draft.dtype("weight", floats ? f4_e2m1fn_x2 : u8);
  if (random.chance(floats ? 50 : 15)) draft.dtype("scale", f8_e4m3fn);
  if (floats && random.chance(70)) draft.present("zero_point", false);
  if (random.chance(60)) draft.dtype("zero_point", u8);
}

void fill_linear_w4a16(Draft& draft) {
  Random& random = draft.random();
  for (double& value : draft.tensor("weight").values) {
    value = static_cast<double>(random.below(256));
  }
  for (double& value : draft.tensor("scale").values) value = random.uniform(0.002, 0.2);
  if (!draft.has("zero_point")) return;
  for (double& value : draft.tensor("zero_point").values) {
    value = static_cast<double>(random.below(16));
  }
}

}  // namespace

Shaper linear_w4a16() {
  return {.op = "linear_w4a16", .shape = shape_linear_w4a16, .fill = fill_linear_w4a16};
}

}  // namespace opmux::conformance::operators
