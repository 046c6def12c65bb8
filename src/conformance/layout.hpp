#pragma once

#include "conformance/case.hpp"
#include "conformance/random.hpp"

namespace opmux::conformance {

/// The kinds of strides that the tensors of a case may have.
enum class Layouts { contiguous, inner_contiguous, any };

Layouts draw_layouts(Random& random);

/// Sets row-major strides without gaps.
void set_contiguous(CaseTensor& tensor);

/// Draws strides and the placement in memory. Only tensors that are not written may be broadcast
/// (stride 0).
void draw_layout(Random& random, Layouts layouts, bool written, CaseTensor& tensor);

}  // namespace opmux::conformance
