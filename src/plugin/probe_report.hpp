#pragma once

#include <string_view>

#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// How the process that tried a plugin came to its end.
struct Ending {
  enum class How { exited, signalled, hung, unknown };
  How how = How::unknown;
  int number = 0;            ///< exit status or signal
  bool memory_full = false;  ///< it had used what it may use when it was last seen
};

/// What a report and an ending amount to. Pure; the report is text from a stranger's process.
Verdict judge(std::string_view report, const Ending& ending);

}  // namespace opmux::plugin
