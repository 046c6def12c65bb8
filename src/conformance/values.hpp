#pragma once

#include "conformance/case.hpp"
#include "conformance/random.hpp"

namespace opmux::conformance {

/// Non-finite values for which an operator defines a result.
enum class Specials { none, nan, nan_and_infinity };

/// Draws values for a float tensor: mostly normally distributed, sometimes sparse, constant, tiny,
/// large, far from zero, or with a few special values.
void draw_values(Random& random, Specials specials, CaseTensor& tensor);

}  // namespace opmux::conformance
