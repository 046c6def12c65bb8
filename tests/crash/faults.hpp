#pragma once

#include <string_view>

namespace opmux::test {

/// Ends the process in the way that the word says: "segv", "bus", "ill", "fpe", "abort", "exit",
/// "overflow" (of the stack).
void fault(std::string_view how);

}  // namespace opmux::test
