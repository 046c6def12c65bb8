#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Crash journal and quarantine: an implementation inside which a process crashed is not used by
/// the next process.
///
/// While a journal is on, the process records on disk which implementation each thread runs. The
/// next process that starts with the same folder reads the journals of processes that ended badly,
/// and quarantines the implementation that caused the crash: explain() then says
/// "health.quarantined", and other candidates run. The reference is never quarantined.
///
///   opmux::Options options;
///   options.state.crash_journal = opmux::CrashJournal::with_handler;
///   opmux::Runtime service = opmux::Runtime::create(options).value();
///   for (const opmux::QuarantineEntry& entry : service.quarantine().entries) {
///     std::cerr << entry.implementation << " is quarantined: " << entry.how << "\n";
///   }
namespace opmux {

/// Contents of the crash journal. A call costs the same in each case.
enum class CrashJournal : uint8_t {
  off,           ///< Nothing; existing quarantines still apply.
  on,            ///< Running implementations: after a kill they are suspects.
  with_handler,  ///< Also the faulting one: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT.
};

/// "off", "on", "with_handler".
constexpr std::string_view name_of(CrashJournal journal) noexcept {
  return journal == CrashJournal::off ? "off" : journal == CrashJournal::on ? "on" : "with_handler";
}

/// Folder and contents of the state that a runtime keeps on disk.
struct StateOptions {
  /// Replaces OPMUX_STATE_DIR; `run` and `store` are created below it, for this user alone (0700).
  /// Empty, and without that variable: $XDG_RUNTIME_DIR/opmux or /dev/shm/opmux-UID for `run`, and
  /// $XDG_STATE_HOME/opmux or ~/.local/state/opmux for `store`.
  std::string folder = {};
  /// If off, OPMUX_CRASH_JOURNAL decides. A journal that cannot be written is logged once
  /// ("journal.off") and the runtime works without it.
  CrashJournal crash_journal = CrashJournal::off;
  /// Keep a status file in `run`, from which other processes read what this runtime does:
  /// <opmux/state_page.hpp>. OPMUX_STATE_PAGE turns it on too. A file that cannot be written is
  /// logged once.
  bool state_page = false;
};

/// An implementation that may not run because a process crashed inside it.
struct QuarantineEntry {
  std::string implementation, build;  ///< Id, and build: another build is not affected.
  std::string how;  ///< "SIGSEGV", "exit", or "suspect": the only one in common to two kills.
  int64_t since = 0, expires = 0;  ///< Seconds since 1970; it expires after 7 days.
  bool here = false;               ///< This runtime has that implementation in that build.
};

/// A process that was killed, and the implementations that were running. Suspects stay usable.
struct SuspectedEnd {
  int64_t found = 0;     ///< When its journal was read; seconds since 1970.
  uint32_t process = 0;  ///< Pid.
  std::vector<std::string> implementations;
};

/// Contents of the store, which all processes of this user share. Made by Runtime::quarantine().
struct Quarantine {
  std::vector<QuarantineEntry> entries;
  std::vector<SuspectedEnd> suspected;
};

/// State of a runtime's crash journal; for monitoring. Made by Runtime::crash_journal().
struct CrashJournalState {
  bool on = false, handler = false;  ///< Whether it is written, and with signal handlers.
  std::string path;                  ///< Journal file of this process; empty if there is none.
  std::string problem;               ///< Why it is off although it was requested.
  uint64_t ends = 0;                 ///< Journals of ended processes that this runtime evaluated.
  uint64_t damaged = 0;              ///< Journals and entries that could not be read.
  uint64_t other_version = 0;        ///< Journals written by other versions of opmux.
  uint64_t unnoted = 0;              ///< Failed attempts to write names of implementations.
  uint64_t threads_left_out = 0;     ///< Threads without a slot in the journal.
};

}  // namespace opmux
