#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "base/system/files.hpp"
#include "crash/hazard_slot.hpp"

namespace opmux::crash {

inline constexpr std::string_view kJournalMagic = "OPMUXJNL";
inline constexpr uint32_t kJournalVersion = 1;
inline constexpr uint32_t kJournalHeaderSize = 4096;
inline constexpr uint32_t kJournalSlots = 512;
inline constexpr uint32_t kJournalMapped = kJournalHeaderSize + kJournalSlots * sizeof(HazardSlot);
/// Stored in place of a signal number if the process ended by exit() inside an implementation.
inline constexpr uint32_t kEndedByExit = 1000;

/// The header of a journal file. The slots follow, then the names of implementations as checked
/// lines.
struct JournalHeader {
  // Written before the file gets its final name.
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint32_t slot_size;
  uint32_t slot_count;
  uint32_t levels;
  uint32_t process;
  int64_t started;  ///< seconds since 1970
  char boot[40];    ///< the kernel's boot_id, without the newline
  uint64_t check;   ///< checksum of the fields above

  /// 1 while no runtime uses the journal, or after the process was asked to end: such an end is
  /// clean.
  std::atomic<uint32_t> idle;
  /// Id of the thread that writes the fields below; the first thread that faults claims them.
  std::atomic<uint32_t> fault_claim;
  /// 1: that thread has marks, so fault_number is reliable.
  std::atomic<uint32_t> fault_known;
  std::atomic<uint32_t> fault_number;  ///< implementation that the thread was in; 0 = none
  std::atomic<uint32_t> fault_signal;  ///< written last; 0 = no fault
  std::atomic<uint32_t> fault_phase;   ///< Phase of that implementation; 0 in older journals
};

/// Checksum of the fields that do not change.
uint64_t check_of(const JournalHeader& header);

/// The lock file of a journal folder. A process holds it while it creates or evaluates journals.
std::string lock_path(const std::string& run_folder);

/// The kernel's id of the current boot; empty if it has none.
std::string boot_id();

/// The entry of an implementation, a plugin file or a backend in a journal.
struct JournalName {
  uint32_t number = 0;     ///< number used in marks
  bool reference = false;  ///< a reference, which is never quarantined
  std::string build, id;

  friend bool operator==(const JournalName&, const JournalName&) = default;
};

std::string line_of(const JournalName& name);
/// Returns false if the line is not an entry.
bool parse_name(std::string_view line, JournalName& name);

/// A build id as written to files: separators are replaced by '_', an empty id by "-".
std::string plain_build(std::string_view build);

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
  std::span<HazardSlot> slots() const { return {slots_, kJournalSlots}; }
  bool contains(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const auto start = reinterpret_cast<uintptr_t>(header_);
    return at >= start && at < start + kJournalMapped;
  }

  /// A free slot; null if all are taken. Thread-safe.
  HazardSlot* take_slot();
  void give_back(HazardSlot* slot);

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
  HazardSlot* slots_ = nullptr;
  uint64_t size_ = 0;
  std::array<std::atomic<uint64_t>, kJournalSlots / 64> taken_{};
};

}  // namespace opmux::crash
