#pragma once

#include <string>
#include <vector>

#include "tuner/measure/cell_spec.hpp"

namespace opmux::bench {

/// The cells that bench_regret measures: operators whose implementations differ in speed, with the
/// sizes of bench_ops --check. Only those of `op` unless it is empty.
std::vector<tuner::CellSpec> regret_cells(const std::string& op);
/// The same operators and types with a number of rows or tokens that varies from 1 to 256, where
/// one dimension is that number.
std::vector<tuner::CellSpec> regret_families(const std::string& op);

}  // namespace opmux::bench
