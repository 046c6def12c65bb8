#include "tuner/merge.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace opmux::tuner {
namespace {

using tune::OperatorRows;
using tune::TuningRow;
using tune::TuningSet;
using tune::Verdict;

/// Half an interval is this many standard errors; see docs/dev/decisions/040-racing.md.
constexpr double kErrorsOfInterval = 3;
/// A row with an interval of no width would outweigh all others.
constexpr double kLeastError = tune::kLogRatioUnit;

/// Rows with the same question are pooled.
using Question = std::tuple<tune::Cell, std::string, tune::Build, tune::Build>;

Question question_of(const TuningRow& row) {
  return {row.cell, row.range.dim, row.implementation, row.baseline};
}

double error_of(const TuningRow& row) {
  return std::max((row.high - row.low) / (2 * kErrorsOfInterval), kLeastError);
}

bool contradict(const std::vector<const TuningRow*>& rows) {
  const auto says = [&](Verdict verdict) {
    return std::ranges::any_of(rows,
                               [&](const TuningRow* row) { return verdict_of(*row) == verdict; });
  };
  return says(Verdict::faster) && says(Verdict::slower);
}

/// The weighted mean of the log ratios and its standard error, with the variance between the rows.
std::pair<double, double> pooled_mean(const std::vector<const TuningRow*>& rows) {
  double weights = 0, squares = 0, sum = 0;
  for (const TuningRow* row : rows) {
    const double weight = 1 / (error_of(*row) * error_of(*row));
    weights += weight;
    squares += weight * weight;
    sum += weight * row->log_ratio;
  }
  const double mean = sum / weights;
  double spread = 0;
  for (const TuningRow* row : rows) {
    const double off = row->log_ratio - mean;
    spread += off * off / (error_of(*row) * error_of(*row));
  }
  const double freedom = static_cast<double>(rows.size() - 1);
  const double scale = weights - squares / weights;
  const double between = scale > 0 ? std::max(0.0, (spread - freedom) / scale) : 0;
  weights = sum = 0;
  for (const TuningRow* row : rows) {
    const double weight = 1 / (error_of(*row) * error_of(*row) + between);
    weights += weight;
    sum += weight * row->log_ratio;
  }
  return {sum / weights, std::sqrt(1 / weights)};
}

double in_units(double log_ratio) { return tune::from_units(tune::to_units(log_ratio)); }

/// One row for several that answer the same question. There is at least one.
TuningRow pool(const std::vector<const TuningRow*>& rows) {
  TuningRow pooled = *rows[0];
  if (rows.size() == 1) return pooled;
  const auto [mean, error] = pooled_mean(rows);
  pooled.low = mean - kErrorsOfInterval * error;
  pooled.high = mean + kErrorsOfInterval * error;
  const bool contradicted = contradict(rows);
  pooled.rounds = 0;
  for (const TuningRow* row : rows) {
    if (contradicted) {
      pooled.low = std::min(pooled.low, row->low);
      pooled.high = std::max(pooled.high, row->high);
    }
    pooled.rounds += row->rounds;
    pooled.rigor = std::min(pooled.rigor, row->rigor);
    pooled.day = std::min(pooled.day, row->day);
    if (row->tool != pooled.tool) pooled.tool = "several";
    if (row->host != pooled.host) pooled.host = 0;
  }
  pooled.log_ratio = in_units(mean);
  pooled.low = std::min(in_units(pooled.low), pooled.log_ratio);
  pooled.high = std::max(in_units(pooled.high), pooled.log_ratio);
  return pooled;
}

/// True if `next` continues the range of `row` with the same measurement.
bool continues(const TuningRow& row, const TuningRow& next) {
  TuningRow longer = row;
  longer.range = next.range;
  return row.range.last + 1 == next.range.first && longer == next;
}

/// Pools the rows of one question: cuts their ranges at all ends, pools the rows of each part, and
/// joins neighbours with the same result.
void pool_ranges(const std::vector<const TuningRow*>& rows, std::vector<TuningRow>& into) {
  std::vector<int64_t> starts;  // of the parts; each ends before the next one
  for (const TuningRow* row : rows) {
    starts.push_back(row->range.first);
    if (row->range.last != INT64_MAX) starts.push_back(row->range.last + 1);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const size_t before = into.size();
  for (size_t i = 0; i < starts.size(); ++i) {
    std::vector<const TuningRow*> here;
    std::ranges::copy_if(rows, std::back_inserter(here),
                         [&](const TuningRow* row) { return row->range.contains(starts[i]); });
    if (here.empty()) continue;
    TuningRow pooled = pool(here);
    pooled.range.first = starts[i];
    pooled.range.last = i + 1 < starts.size() ? starts[i + 1] - 1 : INT64_MAX;
    if (into.size() > before && continues(into.back(), pooled)) {
      into.back().range.last = pooled.range.last;
    } else {
      into.push_back(std::move(pooled));
    }
  }
}

/// Operators of all sets by hard part of the machine, name and schema.
using Section = std::tuple<std::string, std::string, uint64_t>;

}  // namespace

Result<TuningSet> merge(const std::vector<TuningSet>& sets) {
  TuningSet merged;
  if (sets.empty()) return merged;
  merged.measurement = sets[0].measurement;
  std::map<std::string, uint32_t> machines;
  std::map<Section, std::map<Question, std::vector<const TuningRow*>>> sections;
  for (const TuningSet& set : sets) {
    if (set.measurement != merged.measurement) {
      return Status(Code::invalid_argument, "tune.merge",
                    base::concat("rows measured by rules ", merged.measurement, " and ",
                                 set.measurement, " cannot be merged"));
    }
    for (const OperatorRows& one : set.operators) {
      const tune::Machine& machine = set.machines[one.machine];
      const auto [at, is_new] =
          machines.try_emplace(machine.hard, static_cast<uint32_t>(merged.machines.size()));
      if (is_new) merged.machines.push_back(machine);
      tune::Machine& known = merged.machines[at->second];
      if (known.soft != machine.soft) known.soft = "several";
      auto& questions = sections[{machine.hard, one.op, one.schema_hash}];
      for (const TuningRow& row : one.rows) questions[question_of(row)].push_back(&row);
    }
  }
  for (const auto& [section, questions] : sections) {
    const auto& [hard, op, schema_hash] = section;
    OperatorRows one{op, schema_hash, machines.at(hard), {}};
    for (const auto& [question, rows] : questions) pool_ranges(rows, one.rows);
    std::ranges::sort(one.rows, tune::row_before);
    merged.operators.push_back(std::move(one));
  }
  return merged;
}

std::vector<RowChange> compare(const TuningSet& before, const TuningSet& after) {
  // Hosts with other kernels or microcode can have rows about the same question.
  using Key = std::tuple<std::string, std::string, uint64_t, Question, int64_t, int64_t>;
  using Rows = std::vector<const TuningRow*>;
  std::map<Key, std::pair<Rows, Rows>> rows;
  const auto collect = [&](const TuningSet& set, auto member) {
    for (const OperatorRows& one : set.operators) {
      for (const TuningRow& row : one.rows) {
        const Key key{set.machines[one.machine].hard,
                      one.op,
                      one.schema_hash,
                      question_of(row),
                      row.range.first,
                      row.range.last};
        (rows[key].*member).push_back(&row);
      }
    }
  };
  collect(before, &std::pair<Rows, Rows>::first);
  collect(after, &std::pair<Rows, Rows>::second);
  std::vector<RowChange> changes;
  for (auto& [key, both] : rows) {
    auto& [was, is] = both;
    std::erase_if(was, [&](const TuningRow* row) {
      const auto same = std::ranges::find_if(is, [&](auto* other) { return *other == *row; });
      if (same == is.end()) return false;
      is.erase(same);
      return true;
    });
    for (size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
      RowChange change;
      change.machine = std::get<0>(key);
      change.op = std::get<1>(key);
      if (i < was.size()) change.before = *was[i];
      if (i < is.size()) change.after = *is[i];
      using enum RowChange::Kind;
      change.kind = i >= was.size()                             ? added
                    : i >= is.size()                            ? removed
                    : verdict_of(*was[i]) != verdict_of(*is[i]) ? verdict
                                                                : measured;
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

}  // namespace opmux::tuner
