#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "registry/facts.hpp"

namespace opmux::dispatch {

/// The class of a call: two calls with equal keys get the same decision.
struct ClassKey {
  static constexpr size_t kMaxWords = 8;
  std::array<uint64_t, kMaxWords> words{};
  uint32_t count = 0;

  uint64_t hash() const;
  bool equals(const ClassKey& other) const;
};

/// How arguments are mapped to their class: the yes/no answers about divisibility and equality, the
/// interval that a dimension falls into, and the exact value of what counts exactly. Immutable.
class ClassLayout {
 public:
  explicit ClassLayout(const registry::Dependencies& dependencies);

  /// The class of a call whose facts `fact_of` gives. False if the key has no room, or
  /// none for these arguments: such calls are decided each time.
  template <class FactOf>
  bool key_of(const FactOf& fact_of, ClassKey& key) const;

  bool fits() const { return fits_; }

  /// Facts whose values are told apart by 16 bits, and how.
  static bool is_small(registry::FactKind kind);
  /// False for what 16 bits cannot tell apart: element types of several lanes.
  static bool pack_small(registry::FactKind kind, int64_t value, uint16_t& packed) {
    packed = value == registry::kAbsent ? 0xFFFF : static_cast<uint16_t>(value);
    if (value == registry::kAbsent || kind != registry::FactKind::dtype) return true;
    return DType::from_packed(static_cast<uint32_t>(value)).lanes == 1 && packed != 0xFFFF;
  }

 private:
  /// Thresholds on one dimension, ascending: the index of the interval replaces the value.
  struct Intervals {
    registry::Fact dim;
    std::vector<int64_t> cuts;  ///< a value v lies in interval #{cut <= v}
  };

  /// A yes/no question about a dimension; a power of two is tested by its mask.
  struct Bit {
    registry::Predicate question;
    int64_t mask;  ///< value - 1 of a multiple_of a power of two, else 0
  };
  static bool holds(const Bit& bit, int64_t value) {
    if (bit.mask == 0) return registry::holds(bit.question, value);
    return value != registry::kAbsent && (value & bit.mask) == 0;
  }

  std::vector<Bit> bits_;  ///< by dimension
  std::vector<Intervals> intervals_;
  std::vector<registry::Fact> small_;  ///< exact, packed in 16 bits each
  std::vector<registry::Fact> wide_;   ///< exact, one word each
  bool fits_ = true;
};

template <class FactOf>
bool ClassLayout::key_of(const FactOf& fact_of, ClassKey& key) const {
  if (!fits_) return false;
  uint32_t count = 0;
  uint64_t word = 0;
  uint32_t filled = 0;
  const auto push = [&](uint64_t value, uint32_t width) {
    word |= value << filled;
    filled += width;
    if (filled < 64) return;
    key.words[count++] = word;
    word = 0;
    filled = 0;
  };
  const auto close = [&] {
    if (filled != 0) push(0, 64 - filled);
  };
  // Questions stand by fact. An absent one answers no to all, which is not what a size that answers
  // no to all means: capabilities pass over what is absent.
  registry::Fact asked{registry::FactKind::dtype, 255};
  int64_t size = 0;
  for (const Bit& bit : bits_) {
    if (bit.question.fact != asked) {
      size = fact_of(asked = bit.question.fact);
      push(size == registry::kAbsent ? 1 : 0, 1);
    }
    push(holds(bit, size) ? 1 : 0, 1);
  }
  close();
  for (const Intervals& interval : intervals_) {
    const int64_t value = fact_of(interval.dim);
    uint64_t index = 0;
    for (const int64_t cut : interval.cuts) index += value >= cut ? 1 : 0;
    push(value == registry::kAbsent ? 0xFFFF : index, 16);
  }
  for (const registry::Fact& fact : small_) {
    uint16_t packed = 0;
    if (!pack_small(fact.kind, fact_of(fact), packed)) return false;
    push(packed, 16);
  }
  close();
  for (const registry::Fact& fact : wide_) {
    key.words[count++] = static_cast<uint64_t>(fact_of(fact));
  }
  key.count = count;
  return true;
}

}  // namespace opmux::dispatch
