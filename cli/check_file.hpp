#pragma once

#include <string>

#include "cli/check_report.hpp"

namespace opmux::cli {

/// Checks a file without running its code in this process: its path, whose problems are only
/// reported, its contents, and the verdict of the probe. Adds these steps and the plugin's manifest
/// to the report. Returns false if further checks are pointless.
bool look_at_file(const std::string& real_path, CheckReport& report);

}  // namespace opmux::cli
