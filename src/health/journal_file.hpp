#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <opmux/status.hpp>

#include "base/descriptor.hpp"
#include "health/journal_layout.hpp"

namespace opmux::health {

/// The journal that a process writes: a file that it holds a lock on for as long as it lives. The
/// memory is never given back, since threads mark in it without asking. Not thread-safe but for
/// the slots.
class JournalFile {
 public:
  /// Makes one in a folder of the user's own. Others see the file when it is complete. Fails with
  /// "journal.file". `lock` is of the folder, held by the caller.
  static Result<std::unique_ptr<JournalFile>> create(const std::string& folder, int64_t now);

  const std::string& path() const { return path_; }
  JournalHeader& header() const { return *header_; }
  std::span<MarkSlot> slots() const { return {slots_, kJournalSlots}; }
  bool contains(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const auto start = reinterpret_cast<uintptr_t>(header_);
    return at >= start && at < start + kJournalMapped;
  }

  /// A slot that no thread has; null if there is none. Thread-safe.
  MarkSlot* take_slot();
  void give_back(MarkSlot* slot);

  /// Appends names, all or none; they must be there before anything with these numbers runs.
  Status append(std::span<const JournalName> names);

  /// Ends it cleanly: nothing is left of it. Marks may still be made.
  void remove();
  /// In a forked child: leaves the file to the parent, and keeps the marks in memory of its own.
  /// Takes no lock and allocates nothing.
  void leave_to_parent();

 private:
  JournalFile() = default;
  Status fill(int64_t now);

  std::string path_;
  base::Descriptor file_;
  JournalHeader* header_ = nullptr;
  MarkSlot* slots_ = nullptr;
  uint64_t size_ = 0;
  std::array<std::atomic<uint64_t>, kJournalSlots / 64> taken_{};
};

}  // namespace opmux::health
