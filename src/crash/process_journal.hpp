#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "base/locks.hpp"
#include "crash/journal_file.hpp"

namespace opmux::crash {

/// The crash journal of this process. All runtimes that want a journal share it, because each
/// thread has one set of marks. Thread-safe. A forked child creates a new journal when one of its
/// threads next takes a slow path.
class ProcessJournal {
 public:
  static ProcessJournal& instance();

  /// Creates the journal, or shares the existing one, which stays in the folder of the first
  /// join(). Each successful join() needs a leave() with the same `handler`.
  Status join(const std::string& folder, bool handler, int64_t now);
  void leave(bool handler);

  /// Records the names of implementations before they are first called. Known numbers are skipped.
  Status note(std::span<const JournalName> names);

  /// Changes whenever threads should take a new slot; 0 if there is no journal.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  /// A slot for the calling thread; null if there is no journal or all slots are taken.
  HazardSlot* take_slot();
  void give_back(HazardSlot* slot);
  /// Whether a slot is in the current journal file.
  bool holds(const HazardSlot* slot) const;
  /// Whether the crash handler is installed, so that threads need an alternate signal stack.
  bool has_handler() const { return handler_.load(std::memory_order_relaxed); }

  /// Path of the current file; empty if there is none.
  std::string path();
  /// Number of threads that got no slot.
  uint64_t threads_left_out() const { return left_out_.load(std::memory_order_relaxed); }

  /// Called in a forked child before anything else.
  void after_fork();
  /// Called when the process ends by exit().
  void at_exit();

 private:
  struct State {
    std::string folder;
    int users = 0, with_handler = 0;
    std::vector<JournalName> names;
  };
  /// Creates a file with the names in `state`. Waits at most `wait_ms` for the folder's lock.
  Status open(State& state, int64_t now, int wait_ms);
  void reopen_in_child();
  void new_version() {
    version_.store(opened_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  base::ForkGuarded<State> state_;
  /// All files so far, because threads may still write marks into them.
  std::vector<std::unique_ptr<JournalFile>> files_;
  std::atomic<JournalFile*> file_{nullptr};  ///< the current file; null if there is none
  std::atomic<uint64_t> version_{0}, opened_{0}, left_out_{0};
  std::atomic<bool> forked_{false}, handler_{false};
};

}  // namespace opmux::crash
