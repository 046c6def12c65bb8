#pragma once

#include "cli/command.hpp"

namespace opmux::cli {

/// Adds `opmux tune run`, which measures, to the command `opmux tune`.
void add_tune_run(CLI::App& tune, Action& action);

}  // namespace opmux::cli
