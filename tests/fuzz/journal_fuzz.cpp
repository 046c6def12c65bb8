// The reader of crash journals, on arbitrary bytes and on journals with a valid header whose
// faults, marks and names come from the input, and the judgement about the end that it found.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_records.hpp"
#include "byte_source.hpp"
#include "crash/journal_file.hpp"
#include "crash/journal_reader.hpp"
#include "crash/quarantine_file.hpp"

namespace {

namespace crash = opmux::crash;
using opmux::fuzz::ByteSource;

constexpr int64_t kNow = 1'700'000'000;

void insist(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view bytes) {
  const auto end = crash::read_journal(bytes);
  if (!end) {
    const std::string reason(end.error().reason());
    return insist(reason == "journal.damaged" || reason == "journal.version");
  }
  for (size_t i = 0; i < end->in_flight.size(); ++i) {
    for (size_t k = i + 1; k < end->in_flight.size(); ++k) {
      insist(end->in_flight[i].number != end->in_flight[k].number);
    }
  }
  crash::QuarantineList list;
  const crash::Judgement judged = crash::judge(*end, kNow, list);
  if (judged.kind == crash::Judgement::Kind::reference) insist(list.entries.empty());
  if (judged.kind == crash::Judgement::Kind::blamed) insist(list.entries.size() == 1);
  crash::QuarantineList again;
  insist(again.parse(list.text()) && again.entries == list.entries);
}

/// A journal as a process of this version leaves it behind.
std::string journal_of(ByteSource& source, std::string_view names) {
  alignas(crash::JournalHeader) char raw[sizeof(crash::JournalHeader)] = {};
  auto* const header = new (raw) crash::JournalHeader{};
  std::memcpy(header->magic, crash::kJournalMagic.data(), sizeof header->magic);
  header->version = source.rarely() ? source.take<uint32_t>() : crash::kJournalVersion;
  header->header_size = crash::kJournalHeaderSize;
  header->slot_size = sizeof(crash::HazardSlot);
  header->slot_count = crash::kJournalSlots;
  header->levels = crash::kMarkLevels;
  header->process = source.take<uint32_t>();
  header->started = source.take<int64_t>();
  for (char& letter : header->boot) letter = static_cast<char>(source.take());
  header->check = crash::check_of(*header);
  header->idle.store(source.pick(2));
  header->fault_known.store(source.pick(2));
  header->fault_number.store(source.take<uint16_t>());
  header->fault_signal.store(source.take<uint16_t>());
  std::string bytes(crash::kJournalMapped, '\0');
  std::memcpy(bytes.data(), raw, sizeof raw);
  constexpr size_t kPlaces = (crash::kJournalMapped - crash::kJournalHeaderSize) / 4;
  for (uint32_t left = source.pick(64); left > 0; --left) {
    const size_t place = source.take<uint16_t>() % kPlaces;
    const uint32_t number = source.rarely() ? source.take<uint32_t>() : source.take<uint8_t>();
    std::memcpy(bytes.data() + crash::kJournalHeaderSize + 4 * place, &number, sizeof number);
  }
  // Lines with a valid checksum, so that the code behind the checksum is reached.
  while (!names.empty()) {
    const std::string_view line = opmux::base::take_until(names, '\n');
    bytes += source.rarely() ? std::string(line) + "\n" : opmux::base::checked_line(line);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text);
  // The first half of the input decides about the header and the marks, the second has the names.
  ByteSource source(data, size / 2);
  read(journal_of(source, text.substr(size / 2)));
  return 0;
}
