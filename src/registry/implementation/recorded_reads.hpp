#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/locks.hpp"
#include "schema/facts.hpp"

namespace opmux::registry {

/// The facts that the verifier of one implementation has read so far, for
/// OPMUX_IMPL_VERIFY_RECORDED. Facts are only added, so that the keys of decision classes, which
/// contain them, never lose one. Thread-safe.
class RecordedReads {
 public:
  /// Sizes of one dimension that a verifier may read without a warning ("dispatch.many_values").
  static constexpr size_t kFewSizes = 8;

  void add(schema::Fact fact) {
    std::atomic<uint64_t>& known = read_[static_cast<size_t>(fact.kind)];
    const uint64_t bit = uint64_t{1} << fact.index;
    if ((known.load(std::memory_order_relaxed) & bit) == 0)
      known.fetch_or(bit, std::memory_order_release);
  }
  /// Sorted, as facts compare.
  std::vector<schema::Fact> facts() const;

  /// Notes a size of a dimension that the verifier read. True once per dimension: for the first
  /// size beyond kFewSizes different ones.
  bool note_size(uint8_t dim, int64_t size);

 private:
  static constexpr size_t kKinds = static_cast<size_t>(schema::FactKind::is_default) + 1;
  static_assert(schema::kRowsDim < 64 && OPMUX_MAX_ARGS <= 64, "an index is a bit of a word");

  std::array<std::atomic<uint64_t>, kKinds> read_{};  ///< by kind: bit i is set for index i
  base::ForkGuarded<std::map<uint8_t, std::set<int64_t>>> sizes_;
};

}  // namespace opmux::registry
