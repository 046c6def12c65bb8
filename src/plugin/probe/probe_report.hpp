#pragma once

#include <string_view>

#include "plugin/probe/verdict.hpp"

namespace opmux::plugin {

/// How a probe process ended.
struct Ending {
  enum class How { exited, signalled, hung, unknown };
  How how = How::unknown;
  int number = 0;  ///< exit status or signal
  /// The process was near its memory limit when it was last examined.
  bool memory_full = false;
  bool many_threads = false;  ///< it was ended because it had too many threads
};

/// The verdict that follows from a report and an ending. A pure function; the report is untrusted
/// text. `nonce` is the random text of the probe's order: a verdict without it was not written by
/// the probe ("probe.forged").
ProbeResult judge(std::string_view report, const Ending& ending, std::string_view nonce);

}  // namespace opmux::plugin
