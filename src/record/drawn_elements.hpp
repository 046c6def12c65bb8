#pragma once

#include "record/recording.hpp"

namespace opmux::record {

/// Gives elements to tensors that are read and have none in the file: numbers around zero for
/// floating point, zeros for whole numbers, which are mostly positions. The same file always gets
/// the same ones. Returns the names of those tensors. Fails with "replay.size" for tensors that are
/// too large.
Result<std::vector<std::string>> draw_missing_elements(Recording& recording);

}  // namespace opmux::record
