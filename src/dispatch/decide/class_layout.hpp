#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
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

/// The key of a call's class, of any length. Two calls with equal keys get the same decision. The
/// first kInline words need no allocation.
class ClassKey {
 public:
  static constexpr uint32_t kInline = 8;

  uint32_t count() const { return count_; }
  uint64_t operator[](size_t i) const { return i < kInline ? first_[i] : more_[i - kInline]; }
  void clear() {
    count_ = 0;
    more_.clear();
  }
  void append(uint64_t word) {
    if (count_ < kInline) [[likely]] {
      first_[count_] = word;
    } else {
      more_.push_back(word);
    }
    ++count_;
  }
  uint64_t hash() const {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < std::min(count_, kInline); ++i) hash = mix(hash, first_[i]);
    for (const uint64_t word : more_) hash = mix(hash, word);
    return hash;
  }
  bool equals(const ClassKey& other) const {
    uint64_t differs = count_ ^ other.count_;
    for (uint32_t i = 0; i < std::min(count_, kInline); ++i) differs |= first_[i] ^ other.first_[i];
    return differs == 0 && more_ == other.more_;
  }

 private:
  std::array<uint64_t, kInline> first_{};
  std::vector<uint64_t> more_;
  uint32_t count_ = 0;
};

/// Packs small values into the words of a key. finish() appends the last, partial word.
class KeyPacker {
 public:
  explicit KeyPacker(ClassKey& key) : key_(key) {}
  KeyPacker(const KeyPacker&) = delete;
  KeyPacker& operator=(const KeyPacker&) = delete;

  /// Appends the lowest `width` bits; at most 32.
  [[gnu::always_inline]] void push(uint64_t value, uint32_t width) {
    word_ |= value << filled_;
    filled_ += width;
    if (filled_ >= 64) [[unlikely]]
      start_word(value, width);
  }
  void finish() {
    if (filled_ != 0) key_.append(word_);
  }

 private:
  /// Appends the full word; the next one starts with the bits of `value` that did not fit.
  [[gnu::noinline]] void start_word(uint64_t value, uint32_t width) {
    key_.append(word_);
    filled_ -= 64;
    word_ = value >> (width - filled_);
  }

  ClassKey& key_;
  uint64_t word_ = 0;
  uint32_t filled_ = 0;
};

/// Maps the facts of a call to its class key. The key holds only what decisions depend on: yes/no
/// answers about divisibility and equality, the interval that a dimension falls into, the answers
/// of lookups, and the exact value of facts that count exactly. Immutable.
class ClassLayout {
 public:
  explicit ClassLayout(const schema::Dependencies& dependencies);

  /// Builds the key of a call whose facts `fact_of` returns. False if a key cannot hold one of the
  /// facts; such calls are decided each time.
  template <class FactOf>
  bool key_of(const FactOf& fact_of, ClassKey& key) const {
    key.clear();
    return start(fact_of, key) && finish(fact_of, key);
  }

  /// Builds the key in two steps. start() adds the facts that depend only on the kinds of arguments
  /// and the context (dtype, rank, device, presence, ambient facts, tag); a plan stores this part.
  /// finish() adds the rest.
  template <class FactOf>
  bool start(const FactOf& fact_of, ClassKey& key) const {
    return append_exact(kinds_, fact_of, key);
  }
  template <class FactOf>
  bool finish(const FactOf& fact_of, ClassKey& key) const {
    append_answers(fact_of, key);
    return append_exact(values_, fact_of, key);
  }

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
  /// The lanes of an element type, given its code and bits: 1, except for f4_e2m1fn_x2.
  static constexpr uint16_t lanes_of(uint16_t code_and_bits) {
    constexpr auto kPairs = static_cast<uint16_t>(f4_e2m1fn_x2.packed());
    return code_and_bits == kPairs ? f4_e2m1fn_x2.lanes : 1;
  }
  /// Packs a small fact. False if its value does not fit into 16 bits: element types with other
  /// lanes than lanes_of().
  static bool pack_small(schema::FactKind kind, int64_t value, uint16_t& packed) {
    packed = value == schema::kAbsent ? 0xFFFF : static_cast<uint16_t>(value);
    if (value == schema::kAbsent || kind != schema::FactKind::dtype) return true;
    return value >> 16 == lanes_of(packed) && packed != 0xFFFF;
  }

 private:
  /// Ascending thresholds on one dimension. The key holds the index of the interval instead of the
  /// value.
  struct Intervals {
    schema::Fact dim;
    std::vector<int64_t> cuts;  ///< the interval of v is the number of cuts <= v

    uint64_t index_of(int64_t value) const {
      constexpr size_t kFew = 16;  // Counting a few is faster than searching.
      if (cuts.size() > kFew) {
        return static_cast<uint64_t>(std::ranges::upper_bound(cuts, value) - cuts.begin());
      }
      uint64_t index = 0;
      for (const int64_t cut : cuts) index += value >= cut ? 1 : 0;
      return index;
    }
    void add_facts(uint64_t index, policy::ClassFacts& facts) const;
  };

  /// Ascending values that questions compare one dimension with. The key holds which of them it
  /// is, instead of an answer to each.
  struct Equalities {
    schema::Fact dim;
    std::vector<int64_t> values;

    /// 0: none of them; 0xFFFF: the dimension is absent; otherwise the position + 1.
    uint64_t index_of(int64_t value) const {
      if (value == schema::kAbsent) return 0xFFFF;
      const auto found = std::ranges::lower_bound(values, value);
      if (found == values.end() || *found != value) return 0;
      return static_cast<uint64_t>(found - values.begin()) + 1;
    }
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
    KeyPacker packer(key);
    for (const schema::Fact& fact : exact.small) {
      uint16_t packed = 0;
      if (!pack_small(fact.kind, fact_of(fact), packed)) return false;
      packer.push(packed, 16);
    }
    packer.finish();
    for (const schema::Fact& fact : exact.wide) key.append(static_cast<uint64_t>(fact_of(fact)));
    return true;
  }
  template <class FactOf>
  void append_answers(const FactOf& fact_of, ClassKey& key) const;
  static void push_answers(const Asked& asked, int64_t size, KeyPacker& packer);

  std::vector<Asked> asked_;
  std::vector<schema::Formula> formulas_;                       ///< two bits each
  std::vector<std::shared_ptr<const schema::Lookup>> lookups_;  ///< 32 bits each
  std::vector<Intervals> intervals_;
  std::vector<Equalities> equalities_;
  Exact kinds_, values_;
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
  KeyPacker answers(key);
  for (const Asked& asked : asked_) push_answers(asked, fact_of(asked.dim), answers);
  for (const schema::Formula& formula : formulas_) {
    answers.push(static_cast<uint64_t>(formula.answer(fact_of)), 2);
  }
  answers.finish();
  KeyPacker packer(key);
  for (const auto& lookup : lookups_) packer.push(lookup->answer(fact_of), 32);
  for (const Intervals& interval : intervals_) {
    const int64_t value = fact_of(interval.dim);
    packer.push(value == schema::kAbsent ? 0xFFFF : interval.index_of(value), 16);
  }
  for (const Equalities& equality : equalities_) {
    packer.push(equality.index_of(fact_of(equality.dim)), 16);
  }
  packer.finish();
}

}  // namespace opmux::dispatch
