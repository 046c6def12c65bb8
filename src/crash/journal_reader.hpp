#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "crash/journal_file.hpp"

namespace opmux::crash {

/// The state of a process at its end, as read from its journal.
struct JournalEnd {
  uint32_t process = 0;
  int64_t started = 0;
  std::string boot;
  bool idle = false;  ///< no runtime used the journal any more
  /// Fatal signal of a thread, or kEndedByExit; 0 = not known.
  uint32_t signal = 0;
  bool thread_known = false;           ///< that thread had marks
  std::optional<JournalName> culprit;  ///< the implementation or part that the thread was in
  Phase phase = Phase::run;            ///< the function of `culprit` that ran
  /// Implementations and parts in flight on any thread, without duplicates.
  std::vector<JournalName> in_flight;
  uint32_t unnamed = 0;  ///< marks whose implementation has no name in the journal
};

/// Parses the bytes of a journal, any part of which may be missing or corrupt. Fails with
/// "journal.damaged", or with "journal.version" if the journal is intact but of another version.
Result<JournalEnd> read_journal(std::string_view bytes);

/// "SIGSEGV", "exit".
std::string name_of_end(uint32_t signal);

}  // namespace opmux::crash
