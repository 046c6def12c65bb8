#pragma once

#include "cli/command.hpp"

namespace opmux::cli {

/// Adds `opmux tune status`.
void add_tune_status(CLI::App& tune, Action& action);

}  // namespace opmux::cli
