#pragma once

#include <functional>
#include <string>
#include <vector>

#include <opmux/event.hpp>
#include <opmux/status.hpp>

#include "health/quarantine_book.hpp"

namespace opmux::health {

/// The quarantine book as a file that processes share. Changes are atomic.
class QuarantineStore {
 public:
  explicit QuarantineStore(std::string folder) : folder_(std::move(folder)) {}

  std::string path() const { return folder_ + "/quarantine"; }
  /// Returns an empty book if the file does not exist. Fails with "quarantine.file" or
  /// "quarantine.version".
  Result<QuarantineBook> read() const;
  /// Reads the book, calls `edit`, and writes the book if `edit` returns true. `book` receives the
  /// edited contents even if the file could not be written.
  Status change(QuarantineBook& book, const std::function<bool(QuarantineBook&)>& edit) const;

 private:
  std::string folder_;
};

/// An event to log.
struct JournalNews {
  Level level = Level::warning;
  std::string code, impl, text;
};

/// The result of settle().
struct Settlement {
  QuarantineBook book;
  uint32_t ends = 0;     ///< journals that were evaluated
  uint32_t damaged = 0;  ///< unreadable journals, and unreadable lines of the book
  uint32_t other_version = 0;
  std::vector<JournalNews> news;
};

/// Evaluates the journals in `run_folder` whose processes have ended, and records the verdicts in
/// the book. The caller holds the lock of the folder. Journals whose verdicts cannot be written are
/// kept and evaluated again next time.
Settlement settle(const std::string& run_folder, const QuarantineStore& store, int64_t now);

/// The lock file of a journal folder. It is held while a journal is created or evaluated.
std::string lock_path(const std::string& run_folder);

}  // namespace opmux::health
