#pragma once

#include <string_view>

namespace opmux::test {

/// Ends the process in the given way: "segv", "bus", "ill", "fpe", "abort", "exit", "overflow"
/// (stack).
void fault(std::string_view how);

}  // namespace opmux::test
