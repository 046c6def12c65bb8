#pragma once

#include <string_view>

namespace opmux::probe {

/// From now on a signal that would end this process is reported first, from a stack of its own.
void report_crashes();

/// Writes to the report; ends the process if that was closed.
void tell(std::string_view text);
/// "at STAGE": what follows happens there.
void enter(std::string_view stage);

/// Ends the process without running anything of a plugin's.
[[noreturn]] void leave(int status);

}  // namespace opmux::probe
