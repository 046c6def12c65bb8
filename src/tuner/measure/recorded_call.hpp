#pragma once

#include <opmux/operator.hpp>
#include <opmux/status.hpp>

#include "replay/recording.hpp"
#include "tuner/measure/cell_spec.hpp"

namespace opmux::tuner {

/// The cell of a recorded call: its types, sizes and scalars, and the elements that the recording
/// has. Fails with "tune.cell" if the call has strings, lists, tensors on a device or tensors with
/// gaps, which opmux does not time.
Result<CellSpec> spec_of(const replay::Recording& recording, const Operator& op);

}  // namespace opmux::tuner
