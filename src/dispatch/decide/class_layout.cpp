#include "dispatch/decide/class_layout.hpp"

#include <algorithm>
#include <map>

namespace opmux::dispatch {
namespace {

using policy::ClassFact;
using policy::ClassFacts;
using schema::Fact;
using schema::FactKind;
using schema::Predicate;
using schema::Relation;

/// True for facts that are equal in all calls with the same argument kinds and context.
bool is_of_kinds(FactKind kind) {
  switch (kind) {
    case FactKind::dtype:
    case FactKind::rank:
    case FactKind::present:
    case FactKind::device:
    case FactKind::ambient:
    case FactKind::tag:
    case FactKind::threads: return true;
    default: return false;
  }
}

/// Reads the values of a key in the order in which KeyPacker packed them.
class KeyReader {
 public:
  explicit KeyReader(const ClassKey& key) : key_(key) {}

  uint64_t take(uint32_t width) {
    const uint64_t value = key_[word_] >> taken_ & ((uint64_t{1} << width) - 1);
    taken_ += width;
    if (taken_ == 64) close();
    return value;
  }
  uint64_t take_word() { return key_[word_++]; }
  void close() {
    if (taken_ != 0) ++word_;
    taken_ = 0;
  }

 private:
  const ClassKey& key_;
  uint32_t word_ = 0, taken_ = 0;
};

/// The inverse of pack_small().
int64_t unpack_small(FactKind kind, uint64_t packed) {
  if (packed == 0xFFFF) return schema::kAbsent;
  if (kind != FactKind::dtype) return static_cast<int64_t>(packed);
  const int64_t lanes = ClassLayout::lanes_of(static_cast<uint16_t>(packed));
  return static_cast<int64_t>(packed) | lanes << 16;
}

void add_exact(Fact fact, int64_t value, ClassFacts& facts) {
  const bool absent = value == schema::kAbsent;
  facts.push_back(
      {fact, absent ? ClassFact::Is::absent : ClassFact::Is::equal, absent ? 0 : value});
}

/// True if the value of this dimension is known, so that answers about it add nothing.
bool settled(const ClassFacts& facts, Fact dim) {
  return std::ranges::any_of(facts, [&](const ClassFact& known) {
    const bool final = known.is == ClassFact::Is::equal || known.is == ClassFact::Is::absent;
    return final && known.fact == dim;
  });
}

void add_answer(const Predicate& question, bool yes, ClassFacts& facts) {
  using Is = ClassFact::Is;
  const bool multiple = question.relation == Relation::multiple_of;
  const Is is = multiple ? (yes ? Is::multiple : Is::not_multiple)
                : yes    ? Is::equal
                         : Is::not_equal;
  facts.push_back({question.fact, is, question.value});
}

/// Adds a predicate that holds, unless it is known.
void add_predicate(const Predicate& predicate, ClassFacts& facts) {
  using Is = ClassFact::Is;
  ClassFact known{predicate.fact, Is::equal, predicate.value};
  switch (predicate.relation) {
    case Relation::at_least: known.is = Is::at_least; break;
    case Relation::at_most:
      known.is = Is::below;
      ++known.value;
      break;
    case Relation::multiple_of: known.is = Is::multiple; break;
    case Relation::equals: break;
  }
  if (std::ranges::find(facts, known) == facts.end()) facts.push_back(std::move(known));
}

/// Up to this many equality questions about a dimension get a bit each; more share an index.
constexpr size_t kFewEqualities = 4;
/// Indices of 16 bits hold fewer values than this, besides "none" and "absent". A dimension with
/// more counts exactly.
constexpr size_t kMostIndexed = 0xFFFE;

void sort_unique(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
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
  for (const schema::Formula& formula : formulas_) {
    Part part{formula.facts.front(), false, 0};
    for (int bit = 0; bit < 2; ++bit) part.word = mix(part.word, reader.take(1));
    parts.push_back(part);
  }
  reader.close();
  for (const auto& lookup : lookups_) {
    parts.push_back({lookup->facts().front(), false, reader.take(32)});
  }
  for (const Intervals& interval : intervals_) {
    parts.push_back({interval.dim, false, reader.take(16)});
  }
  for (const Equalities& equality : equalities_) {
    parts.push_back({equality.dim, false, reader.take(16)});
  }
  reader.close();
  add_exact(values_);
  return parts;
}

ClassFacts ClassLayout::facts_of(const ClassKey& key) const {
  ClassFacts facts;
  KeyReader reader(key);
  const auto read_exact = [&](const Exact& exact) {
    for (const Fact& fact : exact.small)
      add_exact(fact, unpack_small(fact.kind, reader.take(16)), facts);
    reader.close();
    for (const Fact& fact : exact.wide)
      add_exact(fact, static_cast<int64_t>(reader.take_word()), facts);
  };
  read_exact(kinds_);
  for (const Asked& asked : asked_) {
    std::vector<bool> bits;
    for (size_t i = 0; i < asked.bits(); ++i) bits.push_back(reader.take(1) != 0);
    asked.add_facts(bits, facts);
  }
  for (const schema::Formula& formula : formulas_) {
    const uint64_t low = reader.take(1);
    const auto answer = static_cast<int64_t>(low | reader.take(1) << 1);
    facts.push_back({formula.facts.front(), ClassFact::Is::answered, answer,
                     std::make_shared<const schema::Formula>(formula)});
  }
  reader.close();
  std::vector<uint32_t> answers;
  for (size_t i = 0; i < lookups_.size(); ++i)
    answers.push_back(static_cast<uint32_t>(reader.take(32)));
  std::vector<uint64_t> intervals;
  for (size_t i = 0; i < intervals_.size(); ++i) intervals.push_back(reader.take(16));
  // Equalities first, because an interval adds nothing to a known value.
  for (const Equalities& equality : equalities_) equality.add_facts(reader.take(16), facts);
  for (size_t i = 0; i < intervals_.size(); ++i) {
    if (!settled(facts, intervals_[i].dim)) intervals_[i].add_facts(intervals[i], facts);
  }
  reader.close();
  read_exact(values_);
  for (size_t i = 0; i < lookups_.size(); ++i) {
    for (const Predicate& each : lookups_[i]->describe(answers[i])) add_predicate(each, facts);
  }
  return facts;
}

void ClassLayout::Intervals::add_facts(uint64_t index, ClassFacts& facts) const {
  if (index == 0xFFFF) return facts.push_back({dim, ClassFact::Is::absent});
  // Skip the lower bound 0, because no dimension is negative.
  if (index > 0 && cuts[index - 1] > 0)
    facts.push_back({dim, ClassFact::Is::at_least, cuts[index - 1]});
  if (index < cuts.size()) facts.push_back({dim, ClassFact::Is::below, cuts[index]});
}

void ClassLayout::Equalities::add_facts(uint64_t index, ClassFacts& facts) const {
  if (settled(facts, dim)) return;
  if (index == 0xFFFF) return facts.push_back({dim, ClassFact::Is::absent});
  if (index != 0) return facts.push_back({dim, ClassFact::Is::equal, values[index - 1]});
  for (const int64_t value : values) facts.push_back({dim, ClassFact::Is::not_equal, value});
}

void ClassLayout::Asked::add_facts(const std::vector<bool>& bits, ClassFacts& facts) const {
  if (bits[0]) return facts.push_back({dim, ClassFact::Is::absent});
  const size_t first_other = 1 + power_bits;
  for (size_t i = 0; i < others.size(); ++i) {
    if (others[i].relation == Relation::equals && bits[first_other + i])
      return add_answer(others[i], true, facts);
  }
  int64_t divides = 0, does_not = 0;
  for (uint32_t i = 0; i < power_bits; ++i) {
    const uint64_t power = uint64_t{1} << (lowest_power + i);
    if ((powers & power) == 0 || power == 1) continue;
    if (bits[1 + i]) divides = static_cast<int64_t>(power);
    if (!bits[1 + i] && does_not == 0) does_not = static_cast<int64_t>(power);
  }
  if (divides != 0) add_answer({dim, Relation::multiple_of, divides}, true, facts);
  if (does_not != 0) add_answer({dim, Relation::multiple_of, does_not}, false, facts);
  for (size_t i = 0; i < others.size(); ++i) add_answer(others[i], bits[first_other + i], facts);
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

ClassLayout::ClassLayout(const schema::Dependencies& dependencies)
    : formulas_(dependencies.formulas()), lookups_(dependencies.lookups()) {
  std::map<Fact, std::vector<int64_t>> cuts, equal_to;
  std::vector<Predicate> others;
  for (const Predicate& question : dependencies.questions()) {
    if (std::ranges::binary_search(dependencies.exact(), question.fact)) continue;
    switch (question.relation) {
      case Relation::at_least: cuts[question.fact].push_back(question.value); break;
      case Relation::at_most:
        if (question.value != INT64_MAX) cuts[question.fact].push_back(question.value + 1);
        break;
      case Relation::equals: equal_to[question.fact].push_back(question.value); [[fallthrough]];
      default: others.push_back(question);
    }
  }
  std::vector<Fact> too_many;
  for (auto& [dim, values] : equal_to) {
    if (values.size() <= kFewEqualities) continue;
    sort_unique(values);
    if (values.size() >= kMostIndexed) {
      too_many.push_back(dim);
    } else {
      equalities_.push_back({dim, std::move(values)});
    }
  }
  for (auto& [dim, values] : cuts) {
    sort_unique(values);
    if (values.size() >= kMostIndexed) {
      too_many.push_back(dim);
    } else {
      intervals_.push_back({dim, std::move(values)});
    }
  }
  // Questions are sorted by dimension.
  for (const Predicate& question : others) {
    const bool indexed =
        question.relation == Relation::equals &&
        (std::ranges::find(equalities_, question.fact, &Equalities::dim) != equalities_.end() ||
         std::ranges::find(too_many, question.fact) != too_many.end());
    if (indexed) continue;
    if (asked_.empty() || asked_.back().dim != question.fact) asked_.push_back({question.fact});
    asked_.back().add(question);
  }
  const auto add_exact_fact = [&](const Fact& fact) {
    Exact& part = is_of_kinds(fact.kind) ? kinds_ : values_;
    (is_small(fact.kind) ? part.small : part.wide).push_back(fact);
  };
  for (const Fact& fact : dependencies.exact()) add_exact_fact(fact);
  for (const Fact& fact : too_many) add_exact_fact(fact);
}

}  // namespace opmux::dispatch
