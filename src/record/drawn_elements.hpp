#pragma once

#include "record/recording.hpp"

namespace opmux::record {

/// Generates elements for input tensors that have none in the file: small random numbers for
/// floating-point types, zeros for integers, which are mostly positions. The result depends only on
/// the file. Returns the names of these tensors. Fails with "replay.size" if a tensor is too large.
Result<std::vector<std::string>> draw_missing_elements(Recording& recording);

}  // namespace opmux::record
