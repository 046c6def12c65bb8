#pragma once

/// What the program that tries plugins and the process that starts it agree on. The report is a
/// text: lines "at STAGE" as the trial goes on; then either one of "crash SIGNAL ADDRESS",
/// "forbidden CALL", "memory", or a verdict as plugin/verdict.hpp writes it. Fields by tabs.
namespace opmux::plugin::protocol {

inline constexpr int kReportDescriptor = 3;  ///< where the program writes its report
inline constexpr int kPluginDescriptor = 4;  ///< the checked file, or its sealed copy

inline constexpr int kReported = 90;    ///< exit status: the report is whole
inline constexpr int kReportLost = 91;  ///< the descriptor of the report was closed
inline constexpr int kUnconfined = 92;  ///< the program could not confine itself
inline constexpr int kMisused = 93;     ///< the program was started by somebody else

inline constexpr unsigned long kMostData = 2ul << 30;   ///< bytes of private memory
inline constexpr unsigned long kLargestFile = 1 << 24;  ///< bytes of any file it writes
inline constexpr unsigned long kMostFiles = 256;        ///< open at a time
inline constexpr unsigned long kMostSeconds = 2;        ///< of processor time

}  // namespace opmux::plugin::protocol
