#include "conformance/operators/halves.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {

Shaper gelu_and_mul() { return {.op = "gelu_and_mul", .shape = shape_halves}; }

}  // namespace opmux::conformance::operators
