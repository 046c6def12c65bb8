#include "plugin/mapped_file.hpp"

#include <sys/mman.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

namespace opmux::plugin {
namespace {

/// Device and inode of a mapped file.
struct Identity {
  unsigned major = 0, minor = 0;
  uint64_t number = 0;
  bool operator==(const Identity&) const = default;
};

/// The files that are mapped at two addresses.
std::array<std::optional<Identity>, 2> identities(std::array<uintptr_t, 2> addresses) {
  std::array<std::optional<Identity>, 2> found;
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen("/proc/self/maps", "re"), fclose);
  if (maps == nullptr) return found;
  std::array<char, 4096> line{};
  bool continued = false;  // a path may be longer than the buffer
  while (fgets(line.data(), line.size(), maps.get()) != nullptr) {
    const bool starts = !continued;
    continued = std::char_traits<char>::find(line.data(), line.size(), '\n') == nullptr;
    uint64_t from = 0, to = 0;
    Identity identity;
    if (!starts || sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %*4s %*x %x:%x %" SCNu64, &from,
                          &to, &identity.major, &identity.minor, &identity.number) != 5) {
      continue;
    }
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (addresses[i] >= from && addresses[i] < to) found[i] = identity;
    }
  }
  return found;
}

}  // namespace

bool lies_in(const void* address, int descriptor) {
  constexpr size_t kPage = 4096;
  void* page = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (page == MAP_FAILED) return false;
  const auto found =
      identities({reinterpret_cast<uintptr_t>(address), reinterpret_cast<uintptr_t>(page)});
  munmap(page, kPage);
  return found[0] && found[1] && found[0]->number != 0 && *found[0] == *found[1];
}

}  // namespace opmux::plugin
