#include "crash/journal_reader.hpp"

#include <csignal>
#include <cstring>
#include <map>

#include "base/line_records.hpp"
#include "base/text.hpp"

namespace opmux::crash {
namespace {

using Names = std::map<uint32_t, JournalName>;

Names read_names(std::string_view text) {
  Names names;
  JournalName name;
  while (!text.empty()) {
    const std::string_view line = base::take_until(text, '\n');
    if (parse_name(line, name)) names[name.number] = name;
  }
  return names;
}

void add_in_flight(const HazardSlot& slot, const Names& names, JournalEnd& end) {
  for (uint32_t level = 0; level < kMarkLevels; ++level) {
    const uint32_t number = number_of(slot.word_at(level));
    if (number == 0) continue;
    const auto found = names.find(number);
    if (found == names.end()) {
      ++end.unnamed;
      continue;
    }
    bool known = false;
    for (const JournalName& other : end.in_flight) known |= other.number == number;
    if (!known) end.in_flight.push_back(found->second);
  }
}

Status damaged(std::string_view why) {
  return {Code::invalid_argument, "journal.damaged", std::string(why)};
}

/// Checks the header and that the sizes it states match this version and the file.
Status check_header(const JournalHeader& header, size_t size) {
  if (std::string_view(header.magic, sizeof header.magic) != kJournalMagic) {
    return damaged("the file does not begin with the journal magic");
  }
  if (header.check != check_of(header)) return damaged("the checksum of the header does not match");
  if (header.version != kJournalVersion) {
    return {Code::unsupported, "journal.version",
            base::concat("the journal has version ", header.version, ", this build reads version ",
                         kJournalVersion)};
  }
  if (header.header_size != kJournalHeaderSize || header.slot_size != sizeof(HazardSlot) ||
      header.slot_count != kJournalSlots || header.levels != kMarkLevels) {
    return damaged("the sizes in the header do not match the version");
  }
  if (size < kJournalMapped) return damaged("the file is truncated");
  return {};
}

}  // namespace

Result<JournalEnd> read_journal(std::string_view bytes) {
  if (bytes.size() < sizeof(JournalHeader)) return damaged("the file is truncated");
  alignas(JournalHeader) std::byte raw[sizeof(JournalHeader)];
  std::memcpy(raw, bytes.data(), sizeof raw);
  const auto& header = *reinterpret_cast<const JournalHeader*>(raw);
  if (Status status = check_header(header, bytes.size()); !status.ok()) return status;

  JournalEnd end;
  end.process = header.process;
  end.started = header.started;
  end.boot.assign(header.boot, ::strnlen(header.boot, sizeof header.boot));
  end.idle = header.idle.load() != 0;
  end.signal = header.fault_signal.load();
  end.thread_known = header.fault_known.load() != 0;
  const Names names = read_names(bytes.substr(kJournalMapped));
  for (uint32_t i = 0; i < kJournalSlots; ++i) {
    alignas(HazardSlot) std::byte slot[sizeof(HazardSlot)];
    std::memcpy(slot, bytes.data() + kJournalHeaderSize + i * sizeof(HazardSlot), sizeof slot);
    add_in_flight(*reinterpret_cast<const HazardSlot*>(slot), names, end);
  }
  if (end.signal == 0) return end;
  const auto culprit = names.find(header.fault_number.load());
  if (culprit == names.end()) return end;
  end.culprit = culprit->second;
  end.phase = to_phase(header.fault_phase.load());
  return end;
}

std::string name_of_end(uint32_t signal) {
  if (signal == kEndedByExit) return "exit";
  const char* const word = ::sigabbrev_np(static_cast<int>(signal));
  return word == nullptr ? base::concat("signal ", signal) : base::concat("SIG", word);
}

}  // namespace opmux::crash
