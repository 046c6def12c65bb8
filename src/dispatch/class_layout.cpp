#include "dispatch/class_layout.hpp"

#include <algorithm>
#include <map>
#include <set>

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
    case FactKind::ambient:
    case FactKind::is_default: return true;
    default: return false;
  }
}

/// False for what 16 bits cannot tell apart: element types of several lanes.
bool pack_small(FactKind kind, int64_t value, uint16_t& packed) {
  packed = static_cast<uint16_t>(value);
  if (value == registry::kAbsent) packed = 0xFFFF;
  if (value == registry::kAbsent || kind != FactKind::dtype) return true;
  const auto dtype = DType::from_packed(static_cast<uint32_t>(value));
  return dtype.lanes == 1 && packed != 0xFFFF;
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
  std::set<Fact> asked;
  for (const Predicate& question : dependencies.questions()) {
    switch (question.relation) {
      case Relation::at_least: cuts[question.fact].push_back(question.value); break;
      case Relation::at_most:
        if (question.value != INT64_MAX) cuts[question.fact].push_back(question.value + 1);
        break;
      default: bits_.push_back(question); asked.insert(question.fact);
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
  const size_t bits = bits_.size() + asked.size();
  fits_ = (bits + 63) / 64 + (halves + 3) / 4 + wide_.size() <= ClassKey::kMaxWords;
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
  // Questions stand by fact. An absent one answers no to all, which is not what a size that answers
  // no to all means: capabilities pass over what is absent.
  const Predicate* before = nullptr;
  int64_t asked = registry::kAbsent;
  for (const Predicate& question : bits_) {
    if (before == nullptr || before->fact != question.fact) {
      asked = value_of(signature, question.fact);
      push(asked == registry::kAbsent ? 1 : 0, 1);
    }
    push(holds(question, asked) ? 1 : 0, 1);
    before = &question;
  }
  if (filled != 0) push(0, 64 - filled);
  for (const Intervals& interval : intervals_) {
    const int64_t value = value_of(signature, interval.dim);
    const auto index =
        std::upper_bound(interval.cuts.begin(), interval.cuts.end(), value) - interval.cuts.begin();
    push(value == registry::kAbsent ? 0xFFFF : static_cast<uint16_t>(index), 16);
  }
  for (const Fact& fact : small_) {
    uint16_t packed = 0;
    if (!pack_small(fact.kind, value_of(signature, fact), packed)) return false;
    push(packed, 16);
  }
  if (filled != 0) push(0, 64 - filled);
  for (const Fact& fact : wide_)
    key.words[key.count++] = static_cast<uint64_t>(value_of(signature, fact));
  return true;
}

}  // namespace opmux::dispatch
