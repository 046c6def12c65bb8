#include "conformance/operators/halves.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {

Shaper silu_and_mul() { return {.op = "silu_and_mul", .shape = shape_halves}; }

}  // namespace opmux::conformance::operators
