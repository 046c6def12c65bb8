#include "conformance/operators/product.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {

Shaper linear() {
  return {.op = "linear",
          .shape = [](Draft& draft) { shape_linear(draft, "N", "K"); },
          .bound =
              [](const Case& c, Expected& expected) {
                const CaseTensor& weight = c.tensor("weight");
                const int64_t depth = weight.shape[1];
                bound_linear(
                    c, c.tensor("x").values, depth,
                    [&](int64_t n, int64_t k) {
                      return weight.values[static_cast<size_t>(n * depth + k)];
                    },
                    expected.of(c, "y"));
              }};
}

}  // namespace opmux::conformance::operators
