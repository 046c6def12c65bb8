#include "registry/stream_history.hpp"

namespace opmux::registry {
namespace {

uint64_t hash_of(Device device, const void* stream) {
  uint64_t hash = reinterpret_cast<uintptr_t>(stream);
  for (const int32_t word : {device.type, device.id}) {
    hash = (hash ^ static_cast<uint32_t>(word)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

/// A word whose upper half identifies the stream and is never 0.
uint64_t mark_of(uint64_t hash) { return (hash | 1) << 32; }

}  // namespace

void StreamHistory::note(Device device, const void* stream, uint32_t implementation) noexcept {
  const uint64_t hash = hash_of(device, stream);
  Ring& ring = rings_[hash >> 32 & (kRings - 1)];
  const uint32_t place = ring.next.fetch_add(1, std::memory_order_relaxed);
  ring.words[place % kLength].store(mark_of(hash) | implementation, std::memory_order_relaxed);
}

std::vector<uint32_t> StreamHistory::latest(Device device, const void* stream) const {
  const uint64_t hash = hash_of(device, stream);
  const Ring& ring = rings_[hash >> 32 & (kRings - 1)];
  const uint32_t next = ring.next.load(std::memory_order_relaxed);
  std::vector<uint32_t> found;
  for (uint32_t age = 1; age <= kLength; ++age) {
    const uint64_t word = ring.words[(next - age) % kLength].load(std::memory_order_relaxed);
    if (word != 0 && (word & ~uint64_t{0xffffffff}) == mark_of(hash)) {
      found.push_back(static_cast<uint32_t>(word));
    }
  }
  return found;
}

}  // namespace opmux::registry
