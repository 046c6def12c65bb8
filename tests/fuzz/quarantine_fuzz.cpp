// The quarantine list on arbitrary bytes, as they are and as lines with a valid checksum: an
// accepted list must round-trip, and old entries must disappear from it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/line_records.hpp"
#include "crash/quarantine_file.hpp"

namespace {

using opmux::crash::QuarantineList;

constexpr int64_t kNow = 1'700'000'000;

void insist(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view text) {
  QuarantineList list;
  if (!list.parse(text)) return;
  QuarantineList again;
  insist(again.parse(list.text()) && again.damaged == 0);
  insist(again.entries == list.entries && again.ends == list.ends);
  list.forget_old(kNow);
  insist(list.ends.size() <= QuarantineList::kMostEnds);
  for (const auto& entry : list.entries) {
    insist(entry.since <= kNow && entry.expires > kNow);
    insist(entry.expires <= kNow + opmux::crash::kQuarantineSeconds);
    insist(list.find(entry.id, entry.build, kNow) != nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text);
  std::string checked = std::string(QuarantineList::kTitle) + "\n";
  while (!text.empty()) {
    checked += opmux::base::checked_line(opmux::base::take_until(text, '\n'));
  }
  read(checked);
  return 0;
}
