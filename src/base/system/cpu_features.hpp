#pragma once

#include <set>
#include <string>
#include <string_view>

namespace opmux::base {

/// The CPU's features as the kernel names them ("avx2", "amx_bf16"); empty if /proc/cpuinfo cannot
/// be read. Read once and cached.
const std::set<std::string, std::less<>>& cpu_features();

/// Parses the features from the "flags" or "Features" line of the text of /proc/cpuinfo.
std::set<std::string, std::less<>> parse_cpu_features(std::string_view cpuinfo);

/// Returns the words of the comma-separated list `needed` that `have` lacks, comma-separated.
std::string missing_features(std::string_view needed,
                             const std::set<std::string, std::less<>>& have);

}  // namespace opmux::base
