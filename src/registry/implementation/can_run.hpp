#pragma once

#include <cstdint>
#include <string>

#include "registry/record.hpp"

/// Whether an implementation can be called on this machine, whatever the arguments of the call are.
/// Decisions, explain, policy checks, lockfiles and reports all ask here.
namespace opmux::registry {

/// Why no call may use an implementation, as far as that is known without running its code: it is
/// withdrawn or quarantined, or its backend is switched off or was lost by a fork. Sets `text` to a
/// sentence if it returns a reason.
Reason obstacle_to_use(const ImplementationRecord& implementation, std::string& text);

/// Why an implementation does not work on this machine: the probe of its backend says so, or the
/// processor lacks a feature. The probe runs at most once in a process, and may start a driver.
Reason obstacle_of_machine(const ImplementationRecord& implementation, std::string& text);

/// known: a backend whose probe has not run yet counts as available.
enum class Probe : uint8_t { run, known };

/// The first reason of both functions, or that no device of the backend has an architecture that
/// the implementation supports, which is not asked with Probe::known; `none` if it can run.
Reason obstacle_to_run(const ImplementationRecord& implementation, std::string& text,
                       Probe probe = Probe::run);

/// Whether there is no obstacle.
bool can_run(const ImplementationRecord& implementation, Probe probe = Probe::run);

}  // namespace opmux::registry
