#pragma once

/// The protocol between the probe program and the process that starts it. The report is a text:
/// lines "at STAGE" as the probe proceeds, then either one of "crash SIGNAL ADDRESS", "forbidden
/// CALL", "memory", or a verdict in the format of plugin/verdict.hpp. Fields are separated by tabs.
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
