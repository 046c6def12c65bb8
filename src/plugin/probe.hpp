#pragma once

#include <string>

#include "plugin/library.hpp"
#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// Where the program lies that tries plugins: `libexec/opmux/opmux-probe` of the installation that
/// this library belongs to. Empty if the system does not say where that is.
std::string probe_program();

/// Tries a plugin in a process of its own that can harm nobody: opens, queries and initialises it,
/// runs its self test. Takes two seconds at most. Whatever happens is a verdict: those of
/// judge(), "probe.missing" if there is no such program, "probe.spawn" if it cannot be started.
Verdict probe(const std::string& program, const LibraryFile& file);

}  // namespace opmux::plugin
