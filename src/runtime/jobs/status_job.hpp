#pragma once

#include <string>

#include "base/maintenance.hpp"
#include "status/status_text.hpp"

namespace opmux::runtime {

class Core;

/// Keeps the status file of a runtime up to date, in a private folder of this user. Uses at most
/// one percent of the maintenance thread's time and none of a call's.
base::Maintenance::MakeJob status_file_job(Core& core, std::string folder);

/// The current state of a runtime, without querying a backend, loading a plugin or making a
/// decision.
RuntimeState state_of(Core& core);

}  // namespace opmux::runtime
