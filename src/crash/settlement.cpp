#include "crash/settlement.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "crash/journal_file.hpp"
#include "crash/journal_reader.hpp"

namespace opmux::crash {
namespace {

constexpr int kLockWait = 2000;                 // milliseconds
constexpr size_t kBatch = 32;                   // journals that are evaluated under one lock
constexpr size_t kMostJournalBytes = 64 << 20;  // size limit of a journal
constexpr std::string_view kJournal = "journal-", kUnfinished = "new-journal-";

JournalNews news_of(const Judgement& found, const JournalEnd& end) {
  const std::string process = base::concat("process ", end.process);
  switch (found.kind) {
    case Judgement::Kind::blamed:
      return {Level::error, "journal.blamed", found.id,
              base::concat(process, " ended by ", found.how, " ", place_in(found.phase, found.id),
                           ", which is quarantined for 7 days")};
    case Judgement::Kind::reference:
      return {Level::error, "journal.blamed", found.id,
              base::concat(process, " ended by ", found.how, " ", place_in(found.phase, found.id),
                           ", which stays enabled because it is a reference")};
    case Judgement::Kind::elsewhere:
      return {Level::warning, "journal.elsewhere", "",
              base::concat(process, " ended by ", found.how, " outside every implementation")};
    case Judgement::Kind::alone:
      return {Level::error, "journal.blamed", found.id,
              base::concat(process, " was killed; ", found.id,
                           " is the only implementation that was also in flight in an earlier "
                           "killed process, and is quarantined for "
                           "7 days")};
    default:
      return {
          Level::warning, "journal.suspects", "",
          base::concat(process, " was killed inside ", found.id,
                       found.suspects > 1 ? " and others" : "", ": suspected, but still enabled")};
  }
}

/// One run of settle().
class Settling {
 public:
  Settling(const std::string& folder, const QuarantineStore& store, int64_t now, Settlement& into)
      : folder_(folder),
        store_(store),
        now_(now),
        into_(into),
        entries_(::opendir(folder.c_str()), &::closedir) {}

  /// The names of journals whose processes have ended. Takes no lock that other processes wait for.
  std::vector<std::string> ended() {
    std::vector<std::string> names;
    while (const dirent* entry = entries_ == nullptr ? nullptr : ::readdir(entries_.get())) {
      std::string name = entry->d_name;
      if (name.starts_with(kUnfinished)) unfinished_.push_back(name);
      if (!name.starts_with(kJournal)) continue;
      ++into_.tested;
      if (open_ended(name)) names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
  }

  /// Reads the list if neither an ended process nor the date changes it. The file is replaced as a
  /// whole, so reading needs no lock.
  bool read_list() {
    auto known = store_.read();
    if (!known) return false;
    QuarantineList current = *known;
    current.forget_old(now_);
    into_.list = std::move(*known);
    return current.entries == into_.list.entries && current.ends == into_.list.ends;
  }

  /// Evaluates these journals, except those that another process has evaluated since. Returns
  /// whether the verdicts were stored.
  Status evaluate(std::span<const std::string> names) {
    Status kept;
    do {
      const base::FileLock lock(lock_path(folder_), kLockWait);
      if (!lock) {
        into_.problem = {Code::unavailable, "journal.file",
                         base::concat("cannot lock ", folder_, ": ", std::strerror(errno))};
        return kept;
      }
      ++into_.locked;
      remove_unfinished();
      read(take(names, kBatch));
      kept = store_verdicts();
      if (!kept.ok() && !names.empty()) {
        // The verdicts exist in memory only, so they must be reached together.
        read(take(names, names.size()));
        kept = store_verdicts();
      }
      into_.news.insert(into_.news.end(), news_.begin(), news_.end());
    } while (!names.empty());
    return kept;
  }

 private:
  static std::span<const std::string> take(std::span<const std::string>& names, size_t most) {
    const auto first = names.first(std::min(most, names.size()));
    names = names.subspan(first.size());
    return first;
  }

  /// Opens a file whose process has ended; a running process holds an exclusive lock on it. Tests
  /// with a shared lock, so that two processes that test one file do not find it locked.
  base::Descriptor open_ended(const std::string& name) const {
    base::Descriptor file(::openat(::dirfd(entries_.get()), name.c_str(),
                                   O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    struct stat found{};
    if (!file || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 || ::fstat(file.get(), &found) != 0 ||
        found.st_uid != ::geteuid() || found.st_nlink == 0) {
      return {};
    }
    return file;
  }

  void remove(const std::string& name) const {
    ::unlinkat(::dirfd(entries_.get()), name.c_str(), 0);
  }

  /// Journals are created under the folder's lock, so if this process holds it, the processes that
  /// created these files are gone.
  void remove_unfinished() {
    for (const std::string& name : std::exchange(unfinished_, {})) remove(name);
  }

  /// The caller holds the folder's lock.
  void read(std::span<const std::string> names) {
    for (const std::string& name : names) {
      const base::Descriptor file = open_ended(name);
      if (!file) continue;
      ++into_.read;
      const std::string path = base::concat(folder_, "/", name);
      const auto bytes = base::read_whole(path, kMostJournalBytes);
      auto end = read_journal(bytes ? *bytes : "");
      if (end) {
        ++into_.ends;
        ends_.push_back(std::move(*end));
      } else {
        note_unreadable(path, end.error());
      }
      done_.push_back(name);
    }
  }

  /// Judges the journals that were read, and removes them if the verdicts were stored.
  Status store_verdicts() {
    const Status kept =
        store_.change(into_.list, [&](QuarantineList& list) { return judge_all(list); });
    if (!kept.ok()) return kept;
    for (const std::string& name : done_) remove(name);
    done_.clear();
    ends_.clear();
    return kept;
  }

  bool judge_all(QuarantineList& list) {
    news_.clear();
    const QuarantineList before = list;
    list.forget_old(now_);
    const std::string boot = ends_.empty() ? "" : boot_id();
    for (const JournalEnd& end : ends_) {
      // The machine was rebooted since, so the end of the process is not blamed on a kernel.
      if (end.boot != boot) continue;
      const Judgement found = judge(end, now_, list);
      if (found.kind != Judgement::Kind::clean) news_.push_back(news_of(found, end));
    }
    return before.entries != list.entries || before.ends != list.ends;
  }

  void note_unreadable(const std::string& path, const Status& why) {
    const bool version = why.reason() == "journal.version";
    ++(version ? into_.other_version : into_.damaged);
    into_.news.push_back({Level::warning, std::string(why.reason()), "",
                          base::concat("journal ", path, " is ignored: ", why.message())});
  }

  const std::string& folder_;
  const QuarantineStore& store_;
  const int64_t now_;
  Settlement& into_;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries_;
  std::vector<std::string> unfinished_;  ///< files whose creation was in progress
  std::vector<JournalEnd> ends_;         ///< read, with verdicts that are not stored yet
  std::vector<std::string> done_;        ///< journals to remove when the verdicts are stored
  std::vector<JournalNews> news_;        ///< of the last verdicts
};

}  // namespace

Settlement settle(const std::string& run_folder, const QuarantineStore& store, int64_t now) {
  Settlement found;
  Settling settling(run_folder, store, now, found);
  // Journals are removed after their verdicts were stored. If another process has removed one
  // before this listing, the list that is read afterwards contains the verdict.
  const std::vector<std::string> ended = settling.ended();
  const bool unchanged = ended.empty() && settling.read_list();
  const Status kept = unchanged ? Status() : settling.evaluate(ended);
  if (!kept.ok()) {
    if (kept.reason() == "quarantine.version") ++found.damaged;
    found.news.push_back({Level::warning, std::string(kept.reason()), "",
                          base::concat("quarantines cannot be stored and are kept in memory only: ",
                                       kept.message())});
  }
  found.damaged += found.list.damaged;
  if (found.list.damaged != 0) {
    found.news.push_back({Level::warning, "quarantine.damaged", "",
                          base::concat(found.list.damaged, " lines of ", store.path(),
                                       " are damaged and were skipped")});
  }
  return found;
}

}  // namespace opmux::crash
