#pragma once

#include <set>
#include <string>
#include <string_view>

namespace opmux::base {

/// The CPU's features as the kernel names them ("avx2", "amx_bf16"); empty if it does not say.
/// Read once.
const std::set<std::string, std::less<>>& cpu_features();

/// The features a text would list, from the "flags" or "Features" line of /proc/cpuinfo.
std::set<std::string, std::less<>> parse_cpu_features(std::string_view cpuinfo);

/// Those words of a comma separated list that `have` lacks, comma separated; empty if none.
std::string missing_features(std::string_view needed,
                             const std::set<std::string, std::less<>>& have);

}  // namespace opmux::base
