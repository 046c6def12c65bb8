#include <cmath>

#include "conformance/shaper.hpp"
#include "operators/common/cases/product_sizes.hpp"

namespace opmux::conformance::operators {
namespace {

DType draw_float8(Random& random) {
  return random.pick({f8_e4m3fn, f8_e4m3fn, f8_e5m2, f8_e4m3fnuz, f8_e5m2fnuz});
}

void shape_linear_w8a8(Draft& draft) {
  shape_linear(draft, "N", "K");
  const bool floats = draft.random().chance(45);
  draft.dtype("weight", floats ? draw_float8(draft.random()) : i8);
  if (!draft.random().chance(40)) return;
  draft.dtype("x", floats ? draw_float8(draft.random()) : i8);
  draft.present("x_scale", true);
  if (draft.random().chance(6)) {
    draft.present("x_scale", false);
    draft.make_invalid();
  }
}

void fill_linear_w8a8(Draft& draft) {
  Random& random = draft.random();
  const auto bytes = [&](const char* name) {
    // Floats from the subnormal ones to beyond the largest, which becomes the largest.
    const bool wide = random.chance(30);
    for (double& value : draft.tensor(name).values) {
      value = draft.dtype(name) == i8 ? static_cast<double>(random.between(-128, 127))
              : wide                  ? random.normal() * std::exp2(random.between(-10, 8))
                                      : random.normal();
    }
  };
  const auto scales = [&](const char* name) {
    for (double& value : draft.tensor(name).values) value = random.uniform(0.001, 0.05);
  };
  bytes("weight");
  if (draft.dtype("x").bits == 8) bytes("x");
  scales("weight_scale");
  if (draft.has("x_scale")) scales("x_scale");
}

}  // namespace

Shaper linear_w8a8() {
  return {.op = "linear_w8a8", .shape = shape_linear_w8a8, .fill = fill_linear_w8a8};
}

}  // namespace opmux::conformance::operators
