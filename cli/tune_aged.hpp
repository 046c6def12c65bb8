#pragma once

#include <cstdint>

#include "cli/tune_cells.hpp"

namespace opmux::cli {

/// The cells of aged rows: those that hold on this machine, but were measured with another kernel
/// or microcode, and were not measured again since. With `threads`, those that use as many,
/// otherwise those that use as many as the first. Does not fail if there are none.
FoundCells aged_cells(const Runtime& runtime, const tune::Machine& here, uint32_t threads);

}  // namespace opmux::cli
