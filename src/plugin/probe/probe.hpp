#pragma once

/// The protocol between the probe program and the process that starts it. The report is a text:
/// lines "at STAGE" as the probe proceeds, then either one of "crash SIGNAL ADDRESS", "forbidden
/// CALL", "memory", or a verdict in the format of plugin/verdict.hpp. Fields are separated by tabs.
#include <string>
#include <vector>

#include "plugin/open/library.hpp"
#include "plugin/probe/verdict.hpp"

namespace opmux::plugin::protocol {

inline constexpr int kReportDescriptor = 3;  ///< where the program writes its report
inline constexpr int kPluginDescriptor = 4;  ///< the checked file, or its sealed copy

inline constexpr int kReported = 90;    ///< exit status: the report is complete
inline constexpr int kReportLost = 91;  ///< the plugin closed the descriptor of the report
inline constexpr int kUnconfined = 92;  ///< the program could not confine itself
inline constexpr int kMisused = 93;     ///< the program was not started by probe()

inline constexpr unsigned long kMostData = 2ul << 30;  ///< limit for private memory, in bytes
/// Limit for files that the plugin writes, in bytes.
inline constexpr unsigned long kLargestFile = 1 << 24;
inline constexpr unsigned long kMostFiles = 256;  ///< limit for open files
inline constexpr unsigned long kMostSeconds = 2;  ///< limit for processor time

}  // namespace opmux::plugin::protocol

namespace opmux::plugin {

/// The environment of a probe process, derived from a null-terminated block. It has the library
/// path, the visible devices and the settings of OpenCL and OpenMP; HOME and TMPDIR are set to
/// `folder` and the language to C. All other variables are dropped.
std::vector<std::string> probe_environment(const char* const* block, const std::string& folder);

/// The path of the probe program: `libexec/opmux/opmux-probe` of the installation that this library
/// belongs to. Empty if the installation cannot be determined.
std::string probe_program();

/// Probes a plugin in a confined child process: opens, queries and initialises it, then runs its
/// self test. Takes at most two seconds. Every outcome is a verdict: those of judge(),
/// "probe.missing" if the program does not exist, "probe.spawn" if it cannot be started.
ProbeResult probe(const std::string& program, const LibraryFile& file);

}  // namespace opmux::plugin
