#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/state_page.hpp>

#include "cli/tune_cells.hpp"

namespace opmux::cli {

/// The calls in which a process spends its time, as cells to measure.
struct ServedCells {
  std::vector<AskedCell> cells;  ///< those that take the most time first
  uint32_t threads = 0;          ///< of all of them
  std::string note;              ///< cells that were left out, and why; empty if none was
};

/// Reads the sampled cells of a status file. Cells that differ only in the number of rows or tokens
/// become one with a range. Takes the heaviest until they have 98 % of the time; with `threads`,
/// those that use as many, otherwise those that use as many as the heaviest. Fails with "tune.cell"
/// if the file has none.
Result<ServedCells> served_cells(const ProcessState& process, const Runtime& runtime,
                                 uint32_t threads);

}  // namespace opmux::cli
