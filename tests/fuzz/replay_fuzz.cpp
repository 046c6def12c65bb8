// The replay-file reader on arbitrary bytes, with and without a valid digest: an accepted file must
// round-trip, a refusal must have a reason.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/crypto.hpp"
#include "replay/recording.hpp"
#include "replay/recording_file.hpp"

namespace {

namespace replay = opmux::replay;

void insist(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view bytes) {
  const auto recording = replay::parse_file(bytes, "fuzz");
  if (!recording) return insist(recording.error().reason() == "replay.file");
  const std::string once = replay::to_file(*recording);
  const auto again = replay::parse_file(once, "fuzz");
  insist(again && replay::to_file(*again) == once);
  insist(again->arguments_text() == recording->arguments_text());
  insist(again->complete() == recording->complete());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  std::string sealed(replay::kTitle);
  sealed += "\nsha256 " + opmux::base::sha256_hex(std::as_bytes(std::span(bytes))) + "\n";
  read(sealed.append(bytes));
  return 0;
}
