#pragma once

#include <span>
#include <string>
#include <vector>

#include "tune/machine.hpp"
#include "tune/tuning_row.hpp"

namespace opmux::tuner {

/// Calls with aged rows: measured on a machine like this one, but with another kernel or microcode.
struct AgedRows {
  std::string op;
  tune::Cell cell;
  tune::Range range;  ///< of all of these rows; its name is empty if no dimension varies
};

/// The calls with aged rows in these bundles, without those that also have rows of this kernel and
/// microcode. A file or section that cannot be read has none; `opmux tune status` reports it.
std::vector<AgedRows> aged_rows(std::span<const std::string> paths, const tune::Machine& here);

}  // namespace opmux::tuner
