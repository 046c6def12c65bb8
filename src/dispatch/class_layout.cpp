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

/// -1 unless the question is about multiples of a power of two.
int64_t mask_of(const Predicate& question) {
  const int64_t n = question.value;
  const bool power = n > 0 && (n & (n - 1)) == 0;
  return question.relation == Relation::multiple_of && power ? n - 1 : -1;
}

/// The same for all calls with the same kinds of arguments in the same surroundings.
bool is_of_kinds(FactKind kind) {
  switch (kind) {
    case FactKind::dtype:
    case FactKind::rank:
    case FactKind::present:
    case FactKind::device:
    case FactKind::ambient:
    case FactKind::tag: return true;
    default: return false;
  }
}

/// Takes a key apart as a KeyPacker put it together.
class KeyReader {
 public:
  explicit KeyReader(const ClassKey& key) : key_(key) {}

  uint64_t take(uint32_t width) {
    const uint64_t value = key_.words[word_] >> taken_ & ((uint64_t{1} << width) - 1);
    taken_ += width;
    if (taken_ == 64) close();
    return value;
  }
  uint64_t take_word() { return key_.words[word_++]; }
  void close() {
    if (taken_ != 0) ++word_;
    taken_ = 0;
  }

 private:
  const ClassKey& key_;
  uint32_t word_ = 0, taken_ = 0;
};

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

std::vector<ClassLayout::Part> ClassLayout::parts_of(const ClassKey& key) const {
  std::vector<Part> parts;
  KeyReader reader(key);
  const auto add_exact = [&](const Exact& exact) {
    for (const Fact& fact : exact.small) parts.push_back({fact, true, reader.take(16)});
    reader.close();
    for (const Fact& fact : exact.wide) parts.push_back({fact, true, reader.take_word()});
  };
  add_exact(kinds_);
  for (size_t i = 0; i < bits_.size();) {
    Part part{bits_[i].question.fact, false, reader.take(1)};
    for (; i < bits_.size() && bits_[i].question.fact == part.fact; ++i) {
      part.word = mix(part.word, reader.take(1));
    }
    parts.push_back(part);
  }
  reader.close();
  for (const Intervals& interval : intervals_) {
    parts.push_back({interval.dim, false, reader.take(16)});
  }
  reader.close();
  add_exact(values_);
  return parts;
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
    Exact& part = is_of_kinds(fact.kind) ? kinds_ : values_;
    (is_small(fact.kind) ? part.small : part.wide).push_back(fact);
  }
  size_t words = (bits_.size() + asked.size() + 63) / 64 + (intervals_.size() + 3) / 4;
  for (const Exact* part : {&kinds_, &values_}) {
    words += (part->small.size() + 3) / 4 + part->wide.size();
  }
  fits_ = words <= ClassKey::kMaxWords;
}

}  // namespace opmux::dispatch
