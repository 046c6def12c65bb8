#include "dispatch/class_layout.hpp"

#include <algorithm>
#include <map>

namespace opmux::dispatch {
namespace {

using registry::Fact;
using registry::FactKind;
using registry::Predicate;
using registry::Relation;

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
  for (const Asked& asked : asked_) {
    Part part{asked.dim, false, 0};
    for (size_t i = 0; i < asked.bits(); ++i) part.word = mix(part.word, reader.take(1));
    parts.push_back(part);
  }
  for (const registry::Formula& formula : formulas_) {
    Part part{formula.facts.front(), false, 0};
    for (int bit = 0; bit < 2; ++bit) part.word = mix(part.word, reader.take(1));
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

void ClassLayout::Asked::add(const Predicate& question) {
  const auto value = static_cast<uint64_t>(question.value);
  const bool power = question.relation == Relation::multiple_of && std::has_single_bit(value) &&
                     value <= kHighestPower;
  if (!power) return others.push_back(question);
  powers |= value;
  lowest_power = static_cast<uint32_t>(std::countr_zero(powers));
  power_bits = static_cast<uint32_t>(std::bit_width(powers >> lowest_power));
}

ClassLayout::ClassLayout(const registry::Dependencies& dependencies)
    : formulas_(dependencies.formulas()) {
  std::map<Fact, std::vector<int64_t>> cuts;
  for (const Predicate& question : dependencies.questions()) {
    switch (question.relation) {
      case Relation::at_least: cuts[question.fact].push_back(question.value); break;
      case Relation::at_most:
        if (question.value != INT64_MAX) cuts[question.fact].push_back(question.value + 1);
        break;
      default:
        // Questions come by dimension.
        if (asked_.empty() || asked_.back().dim != question.fact) asked_.push_back({question.fact});
        asked_.back().add(question);
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
  size_t bits = 2 * formulas_.size();
  for (const Asked& asked : asked_) bits += asked.bits();
  size_t words = (bits + 63) / 64 + (intervals_.size() + 3) / 4;
  for (const Exact* part : {&kinds_, &values_}) {
    words += (part->small.size() + 3) / 4 + part->wide.size();
  }
  fits_ = words <= ClassKey::kMaxWords;
}

}  // namespace opmux::dispatch
