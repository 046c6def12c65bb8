#include "dispatch/class_layout.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "dispatch/hash_words.hpp"

namespace opmux::dispatch {
namespace {

using registry::Fact;
using registry::FactKind;
using registry::Predicate;
using registry::Relation;

/// Zero unless the question is about multiples of a power of two above 1.
int64_t mask_of(const Predicate& question) {
  const int64_t n = question.value;
  const bool power = n > 1 && (n & (n - 1)) == 0;
  return question.relation == Relation::multiple_of && power ? n - 1 : 0;
}

}  // namespace

bool ClassLayout::is_small(FactKind kind) {
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
      default: bits_.push_back({question, mask_of(question)}); asked.insert(question.fact);
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

}  // namespace opmux::dispatch
