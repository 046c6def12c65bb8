#pragma once

#include <cstdint>
#include <opmux/state_page.hpp>

#include "cli/tune_cells.hpp"

namespace opmux::cli {

/// Reads the sampled cells of a status file: the calls in which a process spends its time, those
/// that take the most time first. Cells that differ only in the number of rows or tokens
/// become one with a range. Takes the heaviest until they have 98 % of the time; with `threads`,
/// those that use as many, otherwise those that use as many as the heaviest. Fails with "tune.cell"
/// if the file has none.
Result<FoundCells> served_cells(const ProcessState& process, const Runtime& runtime,
                                uint32_t threads);

}  // namespace opmux::cli
