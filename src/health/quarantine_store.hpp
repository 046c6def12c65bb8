#pragma once

#include <functional>
#include <string>
#include <vector>

#include <opmux/event.hpp>
#include <opmux/status.hpp>

#include "health/quarantine_book.hpp"

namespace opmux::health {

/// The book of quarantines as a file that processes share. Changes are whole or not at all.
class QuarantineStore {
 public:
  explicit QuarantineStore(std::string folder) : folder_(std::move(folder)) {}

  std::string path() const { return folder_ + "/quarantine"; }
  /// An empty book if there is no file. Fails with "quarantine.file", or "quarantine.version".
  Result<QuarantineBook> read() const;
  /// Lets `edit` change the book as it is now and writes it if that returns true. `book` becomes
  /// what is, or should be, in the file, also if it cannot be written.
  Status change(QuarantineBook& book, const std::function<bool(QuarantineBook&)>& edit) const;

 private:
  std::string folder_;
};

/// Something that a person should know.
struct JournalNews {
  Level level = Level::warning;
  std::string code, impl, text;
};

/// What became of the journals of processes that are over.
struct Settlement {
  QuarantineBook book;
  uint32_t ends = 0;     ///< journals that were judged
  uint32_t damaged = 0;  ///< journals and lines of the book that could not be read
  uint32_t other_version = 0;
  std::vector<JournalNews> news;
};

/// Judges the journals in `run_folder` whose processes are over and enters the verdicts in the
/// book. The caller holds the folder's lock. What cannot be written is judged again next time.
Settlement settle(const std::string& run_folder, const QuarantineStore& store, int64_t now);

/// The lock of a folder of journals, held while any is made or judged.
std::string lock_path(const std::string& run_folder);

}  // namespace opmux::health
