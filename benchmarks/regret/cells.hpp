#pragma once

#include <string>
#include <vector>

#include "tuner/measure/cell_spec.hpp"

namespace opmux::bench {

/// The cells that bench_regret measures: operators whose implementations differ in speed, with the
/// sizes of bench_ops --check. Only those of `op` unless it is empty.
std::vector<tuner::CellSpec> regret_cells(const std::string& op);

}  // namespace opmux::bench
