#pragma once

#include <set>
#include <string>
#include <string_view>

namespace opmux::base {

using CpuFeatures = std::set<std::string, std::less<>>;

/// The CPU's features as the kernel names them ("avx2", "amx_bf16"); empty if /proc/cpuinfo cannot
/// be read. Read once and cached.
const CpuFeatures& cpu_features();

/// Parses the features from the "flags" or "Features" line of the text of /proc/cpuinfo.
CpuFeatures parse_cpu_features(std::string_view cpuinfo);

/// Returns the words of the comma-separated list `needed` that `have` lacks, comma-separated.
std::string missing_features(std::string_view needed, const CpuFeatures& have);

}  // namespace opmux::base
