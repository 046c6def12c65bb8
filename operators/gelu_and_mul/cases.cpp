#include "conformance/shaper.hpp"
#include "operators/common/cases/halves.hpp"

namespace opmux::conformance::operators {

Shaper gelu_and_mul() { return {.op = "gelu_and_mul", .shape = shape_halves}; }

}  // namespace opmux::conformance::operators
