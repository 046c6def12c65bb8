#pragma once

/// The protocol between the probe program and the process that starts it. The program first reads
/// its order. The report is a text: a line "missing LAYER..." if the system lacks layers of the
/// confinement, lines "at STAGE" as the probe proceeds, then either one of "crash SIGNAL ADDRESS",
/// "forbidden CALL", "memory", or a line "nonce NONCE" and a verdict in the format of
/// plugin/verdict.hpp. Fields are separated by tabs.
#include <string>
#include <string_view>
#include <vector>

#include "plugin/open/library.hpp"
#include "plugin/probe/verdict.hpp"

namespace opmux::plugin::protocol {

inline constexpr int kReportDescriptor = 3;  ///< where the program writes its report
inline constexpr int kPluginDescriptor = 4;  ///< the checked file, or its sealed copy
inline constexpr int kOrderDescriptor = 5;   ///< where the program reads its order
/// The first of the libraries that the plugin needs; the others follow.
inline constexpr int kLibraryDescriptor = 6;

inline constexpr int kReported = 90;    ///< exit status: the report is complete
inline constexpr int kReportLost = 91;  ///< the plugin closed the descriptor of the report
inline constexpr int kUnconfined = 92;  ///< the program could not confine itself
inline constexpr int kMisused = 93;     ///< the program was not started by probe()

inline constexpr unsigned long kMostData = 2ul << 30;      ///< limit for private memory, in bytes
inline constexpr unsigned long kMostShared = 256ul << 20;  ///< limit for shared memory, in bytes
/// Limit for files that the plugin writes, in bytes.
inline constexpr unsigned long kLargestFile = 1 << 24;
inline constexpr unsigned long kMostFiles = 256;     ///< limit for open files
inline constexpr unsigned long kMostSeconds = 2;     ///< limit for processor time
inline constexpr unsigned long kMostThreads = 1024;  ///< limit for threads at one time
/// Limit for all files in the private folder, where the system allows a separate mount, in bytes.
inline constexpr unsigned long kMostWritten = 64 << 20;

/// The order of a probe. Its text form is the nonce and a word, separated by a tab.
struct Order {
  std::string nonce;                 ///< the probe repeats it before the verdict
  bool require_every_layer = false;  ///< the plugin must not run if a layer is missing
};
std::string to_text(const Order& order);
/// Parses the output of to_text(). A malformed order has an empty nonce.
Order parse_order(std::string_view text);

}  // namespace opmux::plugin::protocol

namespace opmux::plugin {

/// The environment of a probe process, derived from a null-terminated block. It has the library
/// path, the visible devices and the settings of OpenCL and OpenMP; HOME, TMPDIR and, if present,
/// POCL_CACHE_DIR are set to `folder`, because a plugin on trial must not write elsewhere, and the
/// language to C. All other variables are dropped.
std::vector<std::string> probe_environment(const char* const* block, const std::string& folder);

/// The path of the probe program: `libexec/opmux/opmux-probe` of the installation that this library
/// belongs to. Empty if the installation cannot be determined.
std::string probe_program();

/// Which layers of confinement a probe needs. `available`: those that the system offers;
/// ProbeResult::missing names the others. `all`: without one of them the plugin is refused
/// ("probe.unconfined") before any of its code runs.
enum class Confinement { available, all };

/// Probes a plugin in a confined child process: opens, queries and initialises it, asks whether its
/// backends are available, then runs its self test. Takes at most two and a half seconds. Every
/// outcome is a verdict: those of judge(), "probe.missing" if the program does not exist,
/// "probe.spawn" if it cannot be started.
ProbeResult probe(const std::string& program, const LibraryFile& file,
                  Confinement confinement = Confinement::available);

}  // namespace opmux::plugin
