#pragma once

#include <string>

#include "cli/check_report.hpp"

namespace opmux::cli {

/// What can be said of a file without running its code here: where it lies, which is reported and
/// refuses nothing, what it is, and how it did in a process that tries plugins. Adds the steps, and
/// what the plugin says of itself. False if there is no use in going on.
bool look_at_file(const std::string& real_path, CheckReport& report);

}  // namespace opmux::cli
