#include "tuner/run_report.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "tuner/measured_point.hpp"
#include "tuner/overlay.hpp"
#include "tuner/tuning_text.hpp"

namespace opmux::tuner {
namespace {

using tune::TuningRow;

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string evidence_of(const TuningRow& row) {
  return base::concat(describe(row), "; ", row.rounds, " rounds, ", rigor_name(row.rigor));
}

/// The row that came nearest to replacing the baseline.
const TuningRow* nearest_row(const std::vector<TuningRow>& rows) {
  const auto nearest = std::ranges::min_element(rows, {}, &TuningRow::log_ratio);
  return nearest == rows.end() ? nullptr : &*nearest;
}

std::string_view disturbance_of(tune::race::Noise noise) {
  switch (noise) {
    case tune::race::Noise::none: break;
    case tune::race::Noise::steal: return "the hypervisor";
    case tune::race::Noise::context_switch: return "another thread";
    case tune::race::Noise::ruler: return "a change of the processor's speed";
  }
  return "something";
}

std::string line_of(const MeasuredRange& range) {
  std::string line = base::concat("  ", padded(text_of(range.range), 16), " ");
  if (const TuningRow* const row = winning_row(range.rows)) {
    return base::concat(line, range.baseline.id, " -> ", row->implementation.id, "  ",
                        evidence_of(*row), "\n");
  }
  line += base::concat(range.baseline.id, " stays");
  if (range.lost > 0) {
    return base::concat(line, "; nothing was compared, because ", disturbance_of(range.noise),
                        " disturbed ", range.lost, range.lost == 1 ? " race" : " races",
                        ": measure again with --resume when the machine is idle\n");
  }
  const TuningRow* const nearest = nearest_row(range.rows);
  if (nearest == nullptr) return line + "; no other implementation was compared with it\n";
  return base::concat(line, "; ", nearest->implementation.id, " is ", evidence_of(*nearest), "\n");
}

std::string line_of(const ExternalRange& range) {
  const std::string line = base::concat("  ", padded(text_of(range.range), 16), " ", range.kernel);
  if (range.rows.empty())
    return base::concat(line, " was not compared with ", range.against, "; --resume continues\n");
  const TuningRow& row = range.rows.front();
  const bool faster = verdict_of(row) == tune::Verdict::faster;
  return base::concat(line, faster ? ", which opmux does not run, is " : " is ", evidence_of(row),
                      "\n");
}

}  // namespace

std::string name_of(const MeasuredCell& cell) {
  return base::concat(cell.op, " ", text_of(cell.cell));
}

std::string report_of(const MeasuredCell& cell) {
  std::string text = name_of(cell) + "\n";
  for (const MeasuredRange& range : cell.ranges) text += line_of(range);
  for (const ExternalRange& range : cell.externals) text += line_of(range);
  if (cell.disagreed > 0) {
    text += base::concat("  ", cell.disagreed, " of ", cell.checked,
                         " random values had another result than their range, "
                         "which was divided there\n");
  }
  for (const std::string& note : cell.notes) text += base::concat("  ", note, "\n");
  if (!cell.complete) text += "  not finished; --resume continues\n";
  return text;
}

tune::TuningSet rows_of(const std::vector<MeasuredCell>& cells, const tune::Machine& machine) {
  tune::TuningSet set;
  for (const MeasuredCell& cell : cells) {
    tune::TuningSet one;
    one.machines.push_back(machine);
    tune::OperatorRows& rows = one.operators.emplace_back();
    rows.op = cell.op;
    rows.schema_hash = cell.schema_hash;
    for (const MeasuredRange& range : cell.ranges)
      rows.rows.insert(rows.rows.end(), range.rows.begin(), range.rows.end());
    for (const ExternalRange& range : cell.externals)
      rows.rows.insert(rows.rows.end(), range.rows.begin(), range.rows.end());
    set = overlay(std::move(set), one);
  }
  return set;
}

}  // namespace opmux::tuner
