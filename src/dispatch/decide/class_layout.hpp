#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/conditions/class_facts.hpp"
#include "schema/dependencies.hpp"

namespace opmux::dispatch {

/// Extends a hash by one more word.
constexpr uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

/// The key of a call's class. Two calls with equal keys get the same decision.
struct ClassKey {
  static constexpr size_t kMaxWords = 8;
  std::array<uint64_t, kMaxWords> words{};
  uint32_t count = 0;

  void append(uint64_t word) { words[count++] = word; }
  uint64_t hash() const {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; ++i) hash = mix(hash, words[i]);
    return hash;
  }
  bool equals(const ClassKey& other) const {
    uint64_t differs = count ^ other.count;
    for (uint32_t i = 0; i < count; ++i) differs |= words[i] ^ other.words[i];
    return differs == 0;
  }
};

/// Packs small values into the words of a key. The destructor appends the last, partial word.
class KeyPacker {
 public:
  explicit KeyPacker(ClassKey& key) : key_(key) {}
  ~KeyPacker() {
    if (filled_ != 0) key_.append(word_);
  }
  KeyPacker(const KeyPacker&) = delete;
  KeyPacker& operator=(const KeyPacker&) = delete;

  /// Appends the lowest `width` bits; at most 32.
  void push(uint64_t value, uint32_t width) {
    word_ |= value << filled_;
    filled_ += width;
    if (filled_ < 64) return;
    key_.append(word_);
    filled_ -= 64;
    word_ = value >> (width - filled_);
  }

 private:
  ClassKey& key_;
  uint64_t word_ = 0;
  uint32_t filled_ = 0;
};

/// Maps the facts of a call to its class key. The key holds only what decisions depend on: yes/no
/// answers about divisibility and equality, the interval that a dimension falls into, and the exact
/// value of facts that count exactly. Immutable.
class ClassLayout {
 public:
  explicit ClassLayout(const schema::Dependencies& dependencies);

  /// Builds the key of a call whose facts `fact_of` returns. False if the facts do not fit into a
  /// key; such calls are decided each time.
  template <class FactOf>
  bool key_of(const FactOf& fact_of, ClassKey& key) const {
    key.count = 0;
    return start(fact_of, key) && finish(fact_of, key);
  }

  /// Builds the key in two steps. start() adds the facts that depend only on the kinds of arguments
  /// and the context (dtype, rank, device, presence, ambient facts, tag); a plan stores this part.
  /// finish() adds the rest.
  template <class FactOf>
  bool start(const FactOf& fact_of, ClassKey& key) const {
    return fits_ && append_exact(kinds_, fact_of, key);
  }
  template <class FactOf>
  bool finish(const FactOf& fact_of, ClassKey& key) const {
    append_answers(fact_of, key);
    return append_exact(values_, fact_of, key);
  }

  bool fits() const { return fits_; }

  /// The part of a key that concerns one fact. Keys that differ in this part have different words.
  struct Part {
    schema::Fact fact;
    bool exact;  ///< the key holds the fact's value; otherwise only answers about it
    uint64_t word;
  };
  /// Splits a key of this layout; every key yields the same facts in the same order.
  std::vector<Part> parts_of(const ClassKey& key) const;
  /// Returns the facts that all calls with this key have in common.
  policy::ClassFacts facts_of(const ClassKey& key) const;

  /// True for facts whose values fit into 16 bits of a key.
  static bool is_small(schema::FactKind kind);
  /// Packs a small fact. False if its value does not fit into 16 bits: element types with several
  /// lanes.
  static bool pack_small(schema::FactKind kind, int64_t value, uint16_t& packed) {
    packed = value == schema::kAbsent ? 0xFFFF : static_cast<uint16_t>(value);
    if (value == schema::kAbsent || kind != schema::FactKind::dtype) return true;
    return DType::from_packed(static_cast<uint32_t>(value)).lanes == 1 && packed != 0xFFFF;
  }

 private:
  /// Ascending thresholds on one dimension. The key holds the index of the interval instead of the
  /// value.
  struct Intervals {
    schema::Fact dim;
    std::vector<int64_t> cuts;  ///< the interval of v is the number of cuts <= v

    void add_facts(uint64_t index, policy::ClassFacts& facts) const;
  };

  /// The yes/no questions that capabilities and rules ask about one dimension.
  struct Asked {
    schema::Fact dim;
    uint64_t powers = 0;  ///< powers of two in "multiple of" questions, answered all at once
    uint32_t lowest_power = 0, power_bits = 0;  ///< exponent of the lowest, bits up to the highest
    std::vector<schema::Predicate> others = {};

    static constexpr uint64_t kHighestPower = 1 << 15;
    void add(const schema::Predicate& question);
    /// Translates the bits of a key, in the order in which push_answers() packed them.
    void add_facts(const std::vector<bool>& bits, policy::ClassFacts& facts) const;
    size_t bits() const { return 1 + power_bits + others.size(); }
  };

  /// Facts whose exact value is part of the key.
  struct Exact {
    std::vector<schema::Fact> small;  ///< packed in 16 bits each
    std::vector<schema::Fact> wide;   ///< one word each
  };
  template <class FactOf>
  static bool append_exact(const Exact& exact, const FactOf& fact_of, ClassKey& key) {
    {
      KeyPacker packer(key);
      for (const schema::Fact& fact : exact.small) {
        uint16_t packed = 0;
        if (!pack_small(fact.kind, fact_of(fact), packed)) return false;
        packer.push(packed, 16);
      }
    }
    for (const schema::Fact& fact : exact.wide) key.append(static_cast<uint64_t>(fact_of(fact)));
    return true;
  }
  template <class FactOf>
  void append_answers(const FactOf& fact_of, ClassKey& key) const;
  static void push_answers(const Asked& asked, int64_t size, KeyPacker& packer);

  std::vector<Asked> asked_;
  std::vector<schema::Formula> formulas_;  ///< two bits each
  std::vector<Intervals> intervals_;
  Exact kinds_, values_;
  bool fits_ = true;
};

inline void ClassLayout::push_answers(const Asked& asked, int64_t size, KeyPacker& packer) {
  // Absence is encoded separately, because capability checks skip absent dimensions. A present
  // dimension that answers no to all questions is a different class.
  const uint64_t absent = size == schema::kAbsent ? 1 : 0;
  const auto word = static_cast<uint64_t>(size);
  const uint64_t dividing_powers = (asked.powers & (word ^ (word - 1))) >> asked.lowest_power;
  packer.push(absent | dividing_powers << 1, 1 + asked.power_bits);
  for (const schema::Predicate& question : asked.others) {
    packer.push(holds(question, size) ? 1 : 0, 1);
  }
}

template <class FactOf>
void ClassLayout::append_answers(const FactOf& fact_of, ClassKey& key) const {
  {
    KeyPacker packer(key);
    for (const Asked& asked : asked_) push_answers(asked, fact_of(asked.dim), packer);
    for (const schema::Formula& formula : formulas_) {
      packer.push(static_cast<uint64_t>(formula.answer(fact_of)), 2);
    }
  }
  KeyPacker packer(key);
  for (const Intervals& interval : intervals_) {
    const int64_t value = fact_of(interval.dim);
    uint64_t index = 0;
    for (const int64_t cut : interval.cuts) index += value >= cut ? 1 : 0;
    packer.push(value == schema::kAbsent ? 0xFFFF : index, 16);
  }
}

}  // namespace opmux::dispatch
