#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "health/mark_slot.hpp"

namespace opmux::health {

inline constexpr std::string_view kJournalMagic = "OPMUXJNL";
inline constexpr uint32_t kJournalVersion = 1;
inline constexpr uint32_t kJournalHeaderSize = 4096;
inline constexpr uint32_t kJournalSlots = 512;
inline constexpr uint32_t kJournalMapped = kJournalHeaderSize + kJournalSlots * sizeof(MarkSlot);
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

  /// 1 while no runtime uses the journal: such an end is clean.
  std::atomic<uint32_t> idle;
  /// Id of the thread that writes the fields below; the first thread that faults claims them.
  std::atomic<uint32_t> fault_claim;
  /// 1: that thread has marks, so fault_number is reliable.
  std::atomic<uint32_t> fault_known;
  std::atomic<uint32_t> fault_number;  ///< implementation that the thread was in; 0 = none
  std::atomic<uint32_t> fault_signal;  ///< written last; 0 = no fault
};

/// Checksum of the fields that do not change.
uint64_t check_of(const JournalHeader& header);

/// The kernel's id of the current boot; empty if it has none.
std::string boot_id();

/// The entry of an implementation in a journal.
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

}  // namespace opmux::health
