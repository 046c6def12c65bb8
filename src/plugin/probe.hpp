#pragma once

#include <string>

#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// Where the program lies that tries plugins: `libexec/opmux/opmux-probe` of the installation that
/// this library belongs to. Empty if the system does not say where that is.
std::string probe_program();

/// A file to be tried: the path that will be opened and the descriptor that was checked.
struct ProbeTarget {
  std::string path;  ///< empty for a sealed copy, which is opened by its descriptor
  int descriptor = -1;
};

/// Tries a plugin in a process of its own that can harm nobody: opens, queries and initialises it,
/// runs its self test. Takes two seconds at most. Whatever happens is a verdict: those of
/// judge(), "probe.missing" if there is no such program, "probe.spawn" if it cannot be started.
Verdict probe(const std::string& program, const ProbeTarget& target);

}  // namespace opmux::plugin
