#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/file_lock.hpp"
#include "base/text.hpp"
#include "base/whole_file.hpp"
#include "health/quarantine_store.hpp"

namespace opmux::health {
namespace {

constexpr size_t kMostJournalBytes = 64 << 20;

std::vector<std::string> journals_in(const std::string& folder) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(folder.c_str()), &::closedir);
  while (all != nullptr) {
    const dirent* const entry = ::readdir(all.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    // The caller holds the folder's lock, so the process that was creating this file is gone.
    if (name.starts_with("new-journal-")) ::unlink(base::concat(folder, "/", name).c_str());
    if (name.starts_with("journal-")) found.push_back(base::concat(folder, "/", name));
  }
  std::ranges::sort(found);
  return found;
}

JournalNews news_of(const Judgement& found, const JournalEnd& end) {
  const std::string process = base::concat("process ", end.process);
  switch (found.kind) {
    case Judgement::Kind::blamed:
      return {Level::error, "journal.blamed", found.id,
              base::concat(process, " ended by ", found.how, " inside ", found.id,
                           ", which is quarantined for 7 days")};
    case Judgement::Kind::reference:
      return {Level::error, "journal.blamed", found.id,
              base::concat(process, " ended by ", found.how, " inside ", found.id,
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

class Settling {
 public:
  Settling(Settlement& into, int64_t now) : into_(into), now_(now), boot_(boot_id()) {}

  /// Reads one journal unless its process is alive.
  void look_at(const std::string& path) {
    base::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
    struct stat found{};
    if (::fstat(file.get(), &found) != 0 || found.st_uid != ::geteuid()) return;
    const auto bytes = base::read_whole(path, kMostJournalBytes);
    auto end = read_journal(bytes ? *bytes : "");
    if (end) {
      ++into_.ends;
      ends_.push_back(std::move(*end));
    } else {
      note_unreadable(path, end.error());
    }
    done_.push_back(path);
    held_.push_back(std::move(file));
  }

  bool judge_all(QuarantineBook& book) {
    news_.clear();
    const QuarantineBook before = book;
    book.forget_old(now_);
    for (const JournalEnd& end : ends_) {
      // The machine was rebooted since, so the end of the process is not blamed on a kernel.
      if (end.boot != boot_) continue;
      const Judgement found = judge(end, now_, book);
      if (found.kind != Judgement::Kind::clean) news_.push_back(news_of(found, end));
    }
    return before.entries != book.entries || before.ends != book.ends;
  }

  /// Called after the verdicts were written.
  void remove_judged() {
    for (const std::string& path : done_) ::unlink(path.c_str());
  }
  void tell() { into_.news.insert(into_.news.end(), news_.begin(), news_.end()); }

 private:
  void note_unreadable(const std::string& path, const Status& why) {
    const bool version = why.reason() == "journal.version";
    ++(version ? into_.other_version : into_.damaged);
    into_.news.push_back({Level::warning, std::string(why.reason()), "",
                          base::concat("journal ", path, " is ignored: ", why.message())});
  }

  Settlement& into_;
  const int64_t now_;
  const std::string boot_;
  std::vector<JournalEnd> ends_;
  std::vector<std::string> done_;
  std::vector<base::Descriptor> held_;
  std::vector<JournalNews> news_;
};

}  // namespace

std::string lock_path(const std::string& run_folder) { return run_folder + "/lock"; }

Settlement settle(const std::string& run_folder, const QuarantineStore& store, int64_t now) {
  Settlement found;
  Settling settling(found, now);
  for (const std::string& path : journals_in(run_folder)) settling.look_at(path);
  const Status kept =
      store.change(found.book, [&](QuarantineBook& book) { return settling.judge_all(book); });
  settling.tell();
  if (kept.ok()) {
    settling.remove_judged();
  } else {
    if (kept.reason() == "quarantine.version") ++found.damaged;
    found.news.push_back({Level::warning, std::string(kept.reason()), "",
                          base::concat("quarantines cannot be stored and are kept in memory only: ",
                                       kept.message())});
  }
  found.damaged += found.book.damaged;
  if (found.book.damaged != 0) {
    found.news.push_back({Level::warning, "quarantine.damaged", "",
                          base::concat(found.book.damaged, " lines of ", store.path(),
                                       " are damaged and were skipped")});
  }
  return found;
}

}  // namespace opmux::health
