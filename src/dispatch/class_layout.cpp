#include "dispatch/class_layout.hpp"

#include <algorithm>
#include <map>

namespace opmux::dispatch {
namespace {

using registry::Fact;
using registry::FactKind;
using registry::Predicate;
using registry::Relation;

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

/// Facts whose values are told apart by 16 bits.
bool is_small(FactKind kind) {
  switch (kind) {
    case FactKind::dtype:
    case FactKind::rank:
    case FactKind::present:
    case FactKind::contiguous:
    case FactKind::inner_contiguous:
    case FactKind::alignment:
    case FactKind::ambient: return true;
    default: return false;
  }
}

uint16_t pack_small(FactKind kind, int64_t value) {
  if (value == registry::kAbsent) return 0xFFFF;
  if (kind != FactKind::dtype) return static_cast<uint16_t>(value);
  const auto dtype = DType::from_packed(static_cast<uint32_t>(value));
  // Lanes above 1 are rare: they only have to differ from the plain type.
  return static_cast<uint16_t>(dtype.code << 12 ^ dtype.bits ^ (dtype.lanes - 1) << 8);
}

}  // namespace

uint64_t ClassKey::hash() const {
  uint64_t hash = count;
  for (uint32_t i = 0; i < count; ++i) hash = mix(hash, words[i]);
  return hash;
}

bool ClassKey::equals(const ClassKey& other) const {
  return count == other.count &&
         std::equal(words.begin(), words.begin() + count, other.words.begin());
}

ClassLayout::ClassLayout(const registry::Dependencies& dependencies) {
  std::map<Fact, std::vector<int64_t>> cuts;
  for (const Predicate& question : dependencies.questions()) {
    switch (question.relation) {
      case Relation::at_least: cuts[question.fact].push_back(question.value); break;
      case Relation::at_most:
        if (question.value != INT64_MAX) cuts[question.fact].push_back(question.value + 1);
        break;
      default: bits_.push_back(question);
    }
  }
  for (auto& [dim, values] : cuts) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    intervals_.push_back({dim, std::move(values)});
  }
  for (const Fact& fact : dependencies.exact()) {
    (is_small(fact.kind) ? small_ : wide_).push_back(fact);
  }
  const size_t halves = small_.size() + intervals_.size();
  fits_ = (bits_.size() + 63) / 64 + (halves + 3) / 4 + wide_.size() <= ClassKey::kMaxWords;
}

bool ClassLayout::key_of(const registry::Signature& signature, ClassKey& key) const {
  if (!fits_) return false;
  uint64_t word = 0;
  uint32_t filled = 0;
  const auto push = [&](uint64_t value, uint32_t width) {
    word |= value << filled;
    filled += width;
    if (filled < 64) return;
    key.words[key.count++] = word;
    word = 0;
    filled = 0;
  };
  key.count = 0;
  for (const Predicate& question : bits_) push(holds(question, signature) ? 1 : 0, 1);
  if (filled != 0) push(0, 64 - filled);
  for (const Intervals& interval : intervals_) {
    const int64_t value = value_of(signature, interval.dim);
    const auto index =
        std::upper_bound(interval.cuts.begin(), interval.cuts.end(), value) - interval.cuts.begin();
    push(value == registry::kAbsent ? 0xFFFF : static_cast<uint16_t>(index), 16);
  }
  for (const Fact& fact : small_) push(pack_small(fact.kind, value_of(signature, fact)), 16);
  if (filled != 0) push(0, 64 - filled);
  for (const Fact& fact : wide_)
    key.words[key.count++] = static_cast<uint64_t>(value_of(signature, fact));
  return true;
}

}  // namespace opmux::dispatch
