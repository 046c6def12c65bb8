#pragma once

#include <string>

#include "plugin/library.hpp"
#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// The path of the probe program: `libexec/opmux/opmux-probe` of the installation that this library
/// belongs to. Empty if the installation cannot be determined.
std::string probe_program();

/// Probes a plugin in a confined child process: opens, queries and initialises it, then runs its
/// self test. Takes at most two seconds. Every outcome is a verdict: those of judge(),
/// "probe.missing" if the program does not exist, "probe.spawn" if it cannot be started.
Verdict probe(const std::string& program, const LibraryFile& file);

}  // namespace opmux::plugin
