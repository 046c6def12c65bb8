#include "registry/implementation/recorded_reads.hpp"

#include <bit>

namespace opmux::registry {

std::vector<schema::Fact> RecordedReads::facts() const {
  std::vector<schema::Fact> all;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    uint64_t left = read_[kind].load(std::memory_order_acquire);
    for (; left != 0; left &= left - 1) {
      all.push_back(
          {static_cast<schema::FactKind>(kind), static_cast<uint8_t>(std::countr_zero(left))});
    }
  }
  return all;
}

bool RecordedReads::note_size(uint8_t dim, int64_t size) {
  return sizes_.with([&](auto& by_dim) {
    std::set<int64_t>& seen = by_dim[dim];
    return seen.size() <= kFewSizes && seen.insert(size).second && seen.size() > kFewSizes;
  });
}

}  // namespace opmux::registry
