#pragma once

#include <string>

#include "runtime/maintenance.hpp"
#include "telemetry/state_page_text.hpp"

namespace opmux::runtime {

class Core;

/// Keeps the state page of a runtime up to date, in a folder of the user's own. Takes at most a
/// hundredth of its thread's time, and never a call's.
Maintenance::MakeJob state_page_job(Core& core, std::string folder);

/// What a runtime does now, as far as it is known without asking a backend, loading a plugin or
/// deciding anything.
RuntimeState state_of(Core& core);

}  // namespace opmux::runtime
