#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

#include "cli/tune_cells.hpp"
#include "tuner/measured_point.hpp"

namespace opmux::cli {

/// Starts this program again to race implementations of a cell at a value of its varying dimension.
/// Another process has other addresses and another state of its allocator. Nullopt if it fails.
std::optional<tuner::MeasuredPoint> race_again(const AskedCell& cell, int64_t value,
                                               const std::vector<std::string>& ids,
                                               uint32_t threads);

/// The work of the new process. Races the implementations of `ids`, separated by commas, in the
/// only cell, and writes the point to the descriptor for reports. Returns an exit code.
int work_on_race(Runtime& runtime, const AskedCell& cell, const std::string& ids, uint32_t threads);

}  // namespace opmux::cli
