#include "conformance/shaper.hpp"
#include "operators/common/cases/halves.hpp"

namespace opmux::conformance::operators {

Shaper silu_and_mul() { return {.op = "silu_and_mul", .shape = shape_halves}; }

}  // namespace opmux::conformance::operators
