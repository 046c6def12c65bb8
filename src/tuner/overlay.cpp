#include "tuner/overlay.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace opmux::tuner {
namespace {

using tune::OperatorRows;
using tune::TuningRow;
using tune::TuningSet;

bool same_calls(const TuningRow& a, const TuningRow& b) {
  return a.cell == b.cell && a.range.dim == b.range.dim;
}

/// Appends the parts of a row that no new row is about.
void append_rest(const TuningRow& row, const std::vector<TuningRow>& now,
                 std::vector<TuningRow>& kept) {
  std::vector<TuningRow> parts{row};
  for (const TuningRow& other : now) {
    if (!same_calls(row, other)) continue;
    std::vector<TuningRow> left;
    for (const TuningRow& part : parts) {
      TuningRow below = part, above = part;
      below.range.last = std::min(part.range.last, other.range.first - 1);
      above.range.first = std::max(part.range.first, other.range.last + 1);
      if (below.range.first <= below.range.last) left.push_back(std::move(below));
      if (above.range.first <= above.range.last) left.push_back(std::move(above));
    }
    parts = std::move(left);
  }
  kept.insert(kept.end(), std::make_move_iterator(parts.begin()),
              std::make_move_iterator(parts.end()));
}

/// The index of a machine in the set, which gets it if it lacks it.
uint32_t index_of(TuningSet& set, const tune::Machine& machine) {
  const auto at = std::ranges::find(set.machines, machine);
  const auto index = static_cast<uint32_t>(at - set.machines.begin());
  if (at == set.machines.end()) set.machines.push_back(machine);
  return index;
}

void replace_rows(TuningSet& set, const OperatorRows& now, const tune::Machine& machine) {
  for (OperatorRows& old : set.operators) {
    // A new kernel does not make the old rows more than aged, so that they are replaced as well.
    if (old.op != now.op || set.machines[old.machine].hard != machine.hard) continue;
    std::vector<TuningRow> kept;
    for (const TuningRow& row : old.rows) {
      if (old.schema_hash == now.schema_hash) append_rest(row, now.rows, kept);
    }
    old.rows = std::move(kept);
  }
}

}  // namespace

TuningSet overlay(TuningSet before, const TuningSet& now) {
  for (const OperatorRows& one : now.operators) {
    const tune::Machine& machine = now.machines[one.machine];
    replace_rows(before, one, machine);
    OperatorRows added = one;
    added.machine = index_of(before, machine);
    before.operators.push_back(std::move(added));
  }
  std::erase_if(before.operators, [](const OperatorRows& one) { return one.rows.empty(); });
  return before;
}

}  // namespace opmux::tuner
