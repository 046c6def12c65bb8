#include "conformance/operators/product_sizes.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {

Shaper linear() {
  return {.op = "linear", .shape = [](Draft& draft) { shape_linear(draft, "N", "K"); }};
}

}  // namespace opmux::conformance::operators
