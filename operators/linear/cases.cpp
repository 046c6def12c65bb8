#include "conformance/shaper.hpp"
#include "operators/common/cases/product_sizes.hpp"

namespace opmux::conformance::operators {

Shaper linear() {
  return {.op = "linear", .shape = [](Draft& draft) { shape_linear(draft, "N", "K"); }};
}

}  // namespace opmux::conformance::operators
