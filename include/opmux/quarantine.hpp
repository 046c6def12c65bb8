#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opmux {

/// What is kept on disk about the ends of processes.
enum class CrashJournal : uint8_t {
  off,           ///< nothing; quarantines that are there hold all the same
  on,            ///< what runs: of a process that is killed, the suspects are known
  with_handler,  ///< and who faults: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT are noted first
};

/// "off", "on", "with_handler".
constexpr std::string_view name_of(CrashJournal journal) noexcept {
  return journal == CrashJournal::off ? "off" : journal == CrashJournal::on ? "on" : "with_handler";
}

/// What a runtime keeps beyond the life of its process, and where.
struct StateOptions {
  /// Instead of OPMUX_STATE_DIR: `run` and `store` below it. Empty: $XDG_RUNTIME_DIR/opmux or
  /// /dev/shm/opmux-UID, and $XDG_STATE_HOME/opmux or ~/.local/state/opmux.
  std::string folder = {};
  /// A journal that cannot be written is told once as an event; everything else works as without.
  CrashJournal crash_journal = CrashJournal::off;
  /// Keep a page in `run` that tells others what this runtime does: <opmux/state_page.hpp>. Also
  /// switched on by OPMUX_STATE_PAGE. One that cannot be written is told once as an event.
  bool state_page = false;
};

/// An implementation that may not run, because a process ended inside of it.
struct QuarantineEntry {
  std::string implementation, build;
  std::string how;  ///< "SIGSEGV", "exit", or "suspect": alone in common to two kills
  int64_t since = 0, expires = 0;  ///< seconds since 1970
  bool here = false;               ///< this runtime has that implementation in that build
};

/// A process that was killed, with what it was inside of.
struct SuspectedEnd {
  int64_t found = 0;  ///< seconds since 1970
  uint32_t process = 0;
  std::vector<std::string> implementations;
};

struct Quarantine {
  std::vector<QuarantineEntry> entries;
  std::vector<SuspectedEnd> suspected;
};

/// What became of a runtime's crash journal.
struct CrashJournalState {
  bool on = false, handler = false;
  std::string path;               ///< of the process's journal, if there is one
  std::string problem;            ///< why it is not on although it should be
  uint64_t ends = 0;              ///< of other processes, judged when this runtime was made
  uint64_t damaged = 0;           ///< journals and entries that could not be read
  uint64_t other_version = 0;     ///< journals of other versions of opmux
  uint64_t unnoted = 0;           ///< times that names of implementations could not be written
  uint64_t threads_left_out = 0;  ///< threads of the process that found no place in the journal
};

}  // namespace opmux
