#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_negate(Draft& draft) { draft.specials(Specials::nan_and_infinity); }

}  // namespace

Shaper negate() { return {.op = "negate", .shape = shape_negate}; }

}  // namespace opmux::conformance::operators
