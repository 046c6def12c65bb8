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
/// Of an end by exit() from inside of an implementation, in the place of a signal.
inline constexpr uint32_t kEndedByExit = 1000;

/// How a journal begins; then the slots, then the names of implementations as checked lines.
struct JournalHeader {
  // Written before anybody can see the file.
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint32_t slot_size;
  uint32_t slot_count;
  uint32_t levels;
  uint32_t process;
  int64_t started;  ///< seconds since 1970
  char boot[40];    ///< the kernel's boot_id, without its line end
  uint64_t check;   ///< of all before

  std::atomic<uint32_t> idle;          ///< 1 while no runtime keeps the journal: an end is clean
  std::atomic<uint32_t> fault_claim;   ///< thread that writes what follows; the first one does
  std::atomic<uint32_t> fault_known;   ///< 1: that thread has called implementations
  std::atomic<uint32_t> fault_number;  ///< of the implementation that it was in
  std::atomic<uint32_t> fault_signal;  ///< written last; 0 = none
};

/// Of the fields that do not change.
uint64_t check_of(const JournalHeader& header);

/// The kernel's name for the time since the machine was started; empty if it has none.
std::string boot_id();

/// What a journal knows of an implementation.
struct JournalName {
  uint32_t number = 0;     ///< as marks have it
  bool reference = false;  ///< of that kind: always left to call
  std::string build, id;

  friend bool operator==(const JournalName&, const JournalName&) = default;
};

std::string line_of(const JournalName& name);
/// False if the line is no name.
bool parse_name(std::string_view line, JournalName& name);

/// A build id as it stands in files: without the characters that separate, "-" for none.
std::string plain_build(std::string_view build);

}  // namespace opmux::health
