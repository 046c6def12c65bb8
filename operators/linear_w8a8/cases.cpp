#include "conformance/shaper.hpp"
#include "operators/common/cases/product_sizes.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_linear_w8a8(Draft& draft) {
  shape_linear(draft, "N", "K");
  draft.dtype("weight", i8);
  if (!draft.random().chance(40)) return;
  draft.dtype("x", i8);
  draft.present("x_scale", true);
  if (draft.random().chance(6)) {
    draft.present("x_scale", false);
    draft.make_invalid();
  }
}

void fill_linear_w8a8(Draft& draft) {
  Random& random = draft.random();
  const auto bytes = [&](const char* name) {
    for (double& value : draft.tensor(name).values) {
      value = static_cast<double>(random.between(-128, 127));
    }
  };
  const auto scales = [&](const char* name) {
    for (double& value : draft.tensor(name).values) value = random.uniform(0.001, 0.05);
  };
  bytes("weight");
  if (draft.dtype("x") == i8) bytes("x");
  scales("weight_scale");
  if (draft.has("x_scale")) scales("x_scale");
}

}  // namespace

Shaper linear_w8a8() {
  return {.op = "linear_w8a8", .shape = shape_linear_w8a8, .fill = fill_linear_w8a8};
}

}  // namespace opmux::conformance::operators
