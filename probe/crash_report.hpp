#pragma once

#include <string_view>

namespace opmux::probe {

/// Installs handlers, on an alternate stack, that report a fatal signal before the process ends.
void report_crashes();

/// Writes to the report; ends the process if the descriptor was closed.
void tell(std::string_view text);
/// Writes "at STAGE", which applies to everything that follows.
void enter(std::string_view stage);

/// Ends the process without running exit handlers of a plugin.
[[noreturn]] void leave(int status);

}  // namespace opmux::probe
