#include "crash/process_journal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "crash/crash_handler.hpp"
#include "crash/quarantine_file.hpp"

namespace opmux::crash {
namespace {

// Never destroyed, because threads may use it until the process ends.
ProcessJournal& the_journal() {
  static auto* const journal = new ProcessJournal;
  return *journal;
}

// Registered when the library is loaded, so that no fork can happen before it.
[[maybe_unused]] const bool kWatchingForks = [] {
  base::at_fork_in_child([](void* journal) { static_cast<ProcessJournal*>(journal)->after_fork(); },
                         &the_journal());
  return true;
}();

}  // namespace

ProcessJournal& ProcessJournal::instance() { return the_journal(); }

Status ProcessJournal::open(State& state, int64_t now) {
  auto made = JournalFile::create(state.folder, now);
  if (!made) return made.error();
  if (Status status = (*made)->append(state.names); !status.ok()) {
    (*made)->remove();
    return status;
  }
  JournalFile* const file = files_.emplace_back(*std::move(made)).get();
  file_.store(file, std::memory_order_release);
  if (state.with_handler > 0) note_faults_in(file);
  new_version();
  [[maybe_unused]] static const int kAtExit = std::atexit([] { the_journal().at_exit(); });
  return {};
}

Status ProcessJournal::join(const std::string& folder, bool handler, int64_t now) {
  return state_.with([&](State& state) -> Status {
    if (state.users == 0) {
      state = {folder, 0, 0, {}};
      if (Status status = open(state, now); !status.ok()) return status;
    }
    ++state.users;
    if (!handler || ++state.with_handler > 1) return {};
    note_faults_in(file_.load(std::memory_order_acquire));
    install_crash_handler();
    handler_.store(true, std::memory_order_relaxed);
    // Threads that have a slot need a signal stack too.
    new_version();
    return {};
  });
}

void ProcessJournal::leave(bool handler) {
  state_.with([&](State& state) {
    if (state.users == 0) return;
    const bool last = --state.users == 0;
    if (last) {
      version_.store(0, std::memory_order_release);
      // Before the handler is removed, because it is needed if the file was truncated.
      if (JournalFile* const file = file_.exchange(nullptr)) file->remove();
    }
    if (handler && --state.with_handler == 0) {
      note_faults_in(nullptr);
      remove_crash_handler();
      handler_.store(false, std::memory_order_relaxed);
    }
    if (last) state = {};
  });
}

Status ProcessJournal::note(std::span<const JournalName> names) {
  return state_.with([&](State& state) -> Status {
    if (state.users == 0) return {};
    std::vector<JournalName> fresh;
    for (const JournalName& name : names) {
      const bool known =
          std::ranges::binary_search(state.names, name.number, {}, &JournalName::number);
      if (!known && name.number != 0) fresh.push_back(name);
    }
    if (fresh.empty()) return {};
    // A forked child that has no file yet writes the names when it creates one.
    JournalFile* const file = file_.load(std::memory_order_acquire);
    Status status = file == nullptr ? Status() : file->append(fresh);
    if (!status.ok()) return status;
    state.names.insert(state.names.end(), fresh.begin(), fresh.end());
    std::ranges::sort(state.names, {}, &JournalName::number);
    return {};
  });
}

void ProcessJournal::reopen_in_child() {
  state_.with([&](State& state) {
    if (!forked_.exchange(false) || state.users == 0) return;
    const base::FileLock lock(lock_path(state.folder), 100);
    if (lock) (void)open(state, ::time(nullptr));
  });
}

HazardSlot* ProcessJournal::take_slot() {
  if (forked_.load(std::memory_order_relaxed)) reopen_in_child();
  JournalFile* const file = file_.load(std::memory_order_acquire);
  if (file == nullptr) return nullptr;
  if (HazardSlot* const slot = file->take_slot()) return slot;
  left_out_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void ProcessJournal::give_back(HazardSlot* slot) {
  JournalFile* const file = file_.load(std::memory_order_acquire);
  if (file != nullptr && file->contains(slot)) file->give_back(slot);
}

bool ProcessJournal::holds(const HazardSlot* slot) const {
  const JournalFile* const file = file_.load(std::memory_order_acquire);
  return file != nullptr && file->contains(slot);
}

std::string ProcessJournal::path() {
  const JournalFile* const file = file_.load(std::memory_order_acquire);
  return file == nullptr ? "" : file->path();
}

void ProcessJournal::after_fork() {
  note_faults_in(nullptr);
  JournalFile* const file = file_.exchange(nullptr, std::memory_order_acq_rel);
  if (file == nullptr) return;
  file->leave_to_parent();
  forked_.store(true, std::memory_order_relaxed);
  new_version();
}

void ProcessJournal::at_exit() {
  if (note_exit()) return;
  version_.store(0, std::memory_order_release);
  if (JournalFile* const file = file_.exchange(nullptr)) file->remove();
  note_faults_in(nullptr);
}

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

  bool judge_all(QuarantineList& book) {
    news_.clear();
    const QuarantineList before = book;
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
      store.change(found.book, [&](QuarantineList& book) { return settling.judge_all(book); });
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

}  // namespace opmux::crash
