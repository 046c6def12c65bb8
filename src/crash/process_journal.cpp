#include "crash/process_journal.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "crash/crash_handler.hpp"

namespace opmux::crash {
namespace {

// Limits of the wait for the folder's lock, in milliseconds. A forked child waits inside a call.
constexpr int kWaitAtStart = 10'000, kWaitInCall = 100;

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

Result<std::unique_ptr<JournalFile>> create_locked(const std::string& folder, int64_t now,
                                                   int wait_ms) {
  const base::FileLock lock(lock_path(folder), wait_ms);
  if (lock) return JournalFile::create(folder, now);
  return Status(Code::unavailable, "journal.file",
                base::concat("cannot lock ", folder, ": ", std::strerror(errno)));
}

}  // namespace

ProcessJournal& ProcessJournal::instance() { return the_journal(); }

Status ProcessJournal::open(State& state, int64_t now, int wait_ms) {
  auto made = create_locked(state.folder, now, wait_ms);
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
      if (Status status = open(state, now, kWaitAtStart); !status.ok()) return status;
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
    std::ranges::sort(fresh, {}, &JournalName::number);
    const bool in_order = state.names.empty() || state.names.back().number < fresh[0].number;
    state.names.insert(state.names.end(), fresh.begin(), fresh.end());
    if (!in_order) std::ranges::sort(state.names, {}, &JournalName::number);
    return {};
  });
}

void ProcessJournal::reopen_in_child() {
  state_.with([&](State& state) {
    if (forked_.exchange(false) && state.users != 0)
      (void)open(state, ::time(nullptr), kWaitInCall);
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

}  // namespace opmux::crash
