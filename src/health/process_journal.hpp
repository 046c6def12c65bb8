#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "base/fork_guarded.hpp"
#include "health/journal_file.hpp"

namespace opmux::health {

/// The crash journal of this process, which all runtimes that want one share: threads have one set
/// of marks each. Thread-safe. A forked child starts a journal of its own when a thread of it next
/// takes a slow path.
class ProcessJournal {
 public:
  static ProcessJournal& instance();

  /// Opens it, or shares it if it is open: then in the folder of whoever came first. The caller
  /// holds the folder's lock. Each that succeeds needs a leave() with the same `handler`.
  Status join(const std::string& folder, bool handler, int64_t now);
  void leave(bool handler);

  /// Names implementations before anything calls them; those already known are passed over.
  Status note(std::span<const JournalName> names);

  /// Changes when threads should ask for a slot; 0 if there is no journal.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  /// A slot for the calling thread; null if there is no journal, or all are taken.
  MarkSlot* take_slot();
  void give_back(MarkSlot* slot);
  /// Whether a slot is in the journal's file.
  bool holds(const MarkSlot* slot) const;
  /// Faults are noted: threads need a stack for signals.
  bool has_handler() const { return handler_.load(std::memory_order_relaxed); }

  /// Of the file in use; empty if there is none.
  std::string path();
  /// Threads that found no slot.
  uint64_t threads_left_out() const { return left_out_.load(std::memory_order_relaxed); }

  /// In a forked child, before anything else.
  void after_fork();
  /// When the process ends by exit().
  void at_exit();

 private:
  struct State {
    std::string folder;
    int users = 0, with_handler = 0;
    std::vector<JournalName> names;
  };
  /// Makes a file for what `state` knows.
  Status open(State& state, int64_t now);
  void reopen_in_child();
  void new_version() {
    version_.store(opened_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  base::ForkGuarded<State> state_;
  std::vector<std::unique_ptr<JournalFile>> files_;  ///< all there were: threads may mark in them
  std::atomic<JournalFile*> file_{nullptr};          ///< the last of them while it is in use
  std::atomic<uint64_t> version_{0}, opened_{0}, left_out_{0};
  std::atomic<bool> forked_{false}, handler_{false};
};

}  // namespace opmux::health
