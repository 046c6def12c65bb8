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
