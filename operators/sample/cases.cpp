#include <cmath>

#include "conformance/shaper.hpp"
#include "operators/common/cases/indices.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_sample(Draft& draft) {
  draft.specials(Specials::nan_and_infinity);
  draft.dim("V") = draft.size(std::min<int64_t>(draft.budget() / 4, 3000));
  for (const char* name : {"tokens", "top_k", "seed", "offset"}) {
    draft.dtype(name, draw_index_type(draft));
  }
}

void fill_sample(Draft& draft) {
  Random& random = draft.random();
  const auto each = [&](const char* name, auto&& draw) {
    if (!draft.has(name)) return;
    for (double& value : draft.tensor(name).values) value = draw();
  };
  each("temperature", [&] { return random.pick({0.0, 0.2, 0.7, 1.0, 1.0, 3.0}); });
  each("top_k", [&] { return static_cast<double>(random.pick({0, 0, -1, 1, 2, 5, 40, 100000})); });
  each("top_p", [&] { return random.pick({1.0, 0.9, 0.5, 0.1, 0.0}); });
  each("seed", [&] { return static_cast<double>(random.between(-1000000, int64_t{1} << 40)); });
  each("offset", [&] { return static_cast<double>(random.below(100000)); });
  for (const char* name : {"temperature", "top_p"}) {
    if (!draft.has(name) || draft.tensor(name).values.empty() || !random.chance(2)) continue;
    draft.tensor(name).values[0] = random.pick({-1.0, static_cast<double>(NAN)});
    draft.make_invalid();
  }
}

}  // namespace

Shaper sample() { return {.op = "sample", .shape = shape_sample, .fill = fill_sample}; }

}  // namespace opmux::conformance::operators
