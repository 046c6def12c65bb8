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

/// The crash journal that a process writes. The process holds a lock on the file for as long as it
/// lives. The mapping is never released, because threads write marks into it without
/// synchronization. Only the functions on slots are thread-safe.
class JournalFile {
 public:
  /// Creates a journal in a private folder of this user. The caller holds the folder's lock. The
  /// file gets its final name when it is complete. Fails with "journal.file".
  static Result<std::unique_ptr<JournalFile>> create(const std::string& folder, int64_t now);

  const std::string& path() const { return path_; }
  JournalHeader& header() const { return *header_; }
  std::span<MarkSlot> slots() const { return {slots_, kJournalSlots}; }
  bool contains(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const auto start = reinterpret_cast<uintptr_t>(header_);
    return at >= start && at < start + kJournalMapped;
  }

  /// A free slot; null if all are taken. Thread-safe.
  MarkSlot* take_slot();
  void give_back(MarkSlot* slot);

  /// Appends all names or none. Must be called before an implementation with one of these numbers
  /// runs.
  Status append(std::span<const JournalName> names);

  /// Clean end: deletes the file. Threads may still write marks into the mapping.
  void remove();
  /// For a forked child: closes the file, which belongs to the parent, and replaces the mapping by
  /// a private copy. Takes no lock and allocates nothing.
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
