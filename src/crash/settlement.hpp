#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/options.hpp>
#include <opmux/status.hpp>

#include "crash/quarantine_file.hpp"

namespace opmux::crash {

/// An event to log.
struct JournalNews {
  Level level = Level::warning;
  std::string code, impl, text;
};

/// The result of settle().
struct Settlement {
  QuarantineList list;
  uint32_t ends = 0;     ///< journals that were evaluated
  uint32_t damaged = 0;  ///< unreadable journals, and unreadable lines of the list
  uint32_t other_version = 0;
  std::vector<JournalNews> news;
  /// Not ok if the folder could not be locked: journals of ended processes remain, and `list` is
  /// not filled in.
  Status problem;

  // The work that was done, for tests.
  uint32_t tested = 0;  ///< files whose lock was tested
  uint32_t read = 0;    ///< journals that were read
  uint32_t locked = 0;  ///< times that the folder was locked
};

/// Evaluates the journals in `run_folder` whose processes have ended, and records the verdicts in
/// the list. The folder is locked only while such journals are evaluated, a batch at a time, so
/// processes that start at the same time evaluate each journal once and all of them receive the
/// verdict. Journals whose verdicts cannot be written are kept and evaluated again next time.
Settlement settle(const std::string& run_folder, const QuarantineStore& store, int64_t now);

}  // namespace opmux::crash
