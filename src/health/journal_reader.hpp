#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "health/journal_layout.hpp"

namespace opmux::health {

/// What the journal of a process that is over says about its end.
struct JournalEnd {
  uint32_t process = 0;
  int64_t started = 0;
  std::string boot;
  bool idle = false;                   ///< nobody kept the journal any more
  uint32_t signal = 0;                 ///< that a thread faulted with; 0 = not known
  bool thread_known = false;           ///< that thread has called implementations
  std::optional<JournalName> culprit;  ///< the implementation that it was in
  std::vector<JournalName> in_flight;  ///< in any thread, each once
  uint32_t unnamed = 0;                ///< marks of implementations whose names are lost
};

/// Reads the bytes of a journal, of which any part may be missing or wrong. Fails with
/// "journal.damaged", or "journal.version" if it is whole but of another version.
Result<JournalEnd> read_journal(std::string_view bytes);

/// The word for an end: "SIGSEGV", "exit".
std::string name_of_end(uint32_t signal);

}  // namespace opmux::health
