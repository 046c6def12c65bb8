// The lockfile reader on arbitrary bytes: an accepted file must round-trip, a refusal must name a
// position.
#include <opmux/policy.hpp>

#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lock = opmux::Lockfile::parse(text, "fuzz.lock");
  if (!lock) {
    const bool placed = lock.error().message().starts_with("fuzz.lock:");
    return placed ? 0 : (std::abort(), 0);
  }
  const auto again = opmux::Lockfile::parse(lock->to_string());
  if (!again || again->to_string() != lock->to_string()) std::abort();
  if (!opmux::differences(*lock, *again).empty()) std::abort();
  return 0;
}
