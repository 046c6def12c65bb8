#include "verify/bounds.hpp"

namespace opmux::verify::operators {

/// Results are exact, because elements are rounded at most once.
Bounds negate() { return {.op = "negate"}; }

}  // namespace opmux::verify::operators
