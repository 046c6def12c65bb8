#pragma once

#include "conformance/case.hpp"
#include "conformance/random.hpp"

namespace opmux::conformance {

/// How adventurous the strides of a case's tensors are.
enum class Layouts { contiguous, inner_contiguous, any };

Layouts draw_layouts(Random& random);

/// Row-major without gaps.
void set_contiguous(CaseTensor& tensor);

/// Draws strides and where in its memory the tensor stands. Only tensors that are not written may
/// be broadcast (stride 0).
void draw_layout(Random& random, Layouts layouts, bool written, CaseTensor& tensor);

}  // namespace opmux::conformance
