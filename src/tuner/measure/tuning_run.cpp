#include "tuner/measure/tuning_run.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "base/text.hpp"

namespace opmux::tuner {
namespace {

constexpr uint64_t kMostRaceNs = 3'000'000'000;
/// A race that may last less than this ends before it tells anything.
constexpr uint64_t kLeastRaceNs = 50'000'000;

/// The same numbers for the same cell, so that a resumed run checks the same values.
uint64_t seed_of(const std::string& text) {
  uint64_t seed = 0xcbf29ce484222325u;
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

/// The words by which a program in another language makes the call: "x=bf16", "rows=4".
std::vector<std::string> words_of(const CellSpec& spec, const tune::Range& over, int64_t value) {
  std::vector<std::string> words;
  for (const std::string& dtype : spec.dtypes)
    words.push_back(dtype.find('=') == std::string::npos ? "x=" + dtype : dtype);
  for (const std::string& tensor : spec.with) words.push_back(tensor + "=given");
  for (const auto& [name, size] : spec.dims) words.push_back(base::concat(name, "=", size));
  if (!over.dim.empty()) words.push_back(base::concat(over.dim, "=", value));
  return words;
}

}  // namespace

/// A cell while it is measured.
struct TuningRun::Cell {
  Cell(const CellSpec& given, CellPlan planned) : spec(given), plan(std::move(planned)) {}

  const CellSpec& spec;
  CellPlan plan;
  std::unique_ptr<CellRace> race;
  std::map<int64_t, MeasuredPoint> points;
  MeasuredCell result;
  std::string error;      ///< why a value could not be measured
  uint64_t until_ns = 0;  ///< by the clock; later no race begins
};

TuningRun::TuningRun(Runtime& runtime, BuildFinder& builds, Workbench& workbench,
                     const base::Clock& clock, tune::race::NoiseObserver& noise,
                     const RunOptions& options, const RunHooks& hooks)
    : runtime_(runtime),
      builds_(builds),
      workbench_(workbench),
      clock_(clock),
      noise_(noise),
      options_(options),
      hooks_(hooks) {}

uint64_t TuningRun::left_ns() const {
  const uint64_t spent = clock_.now_ns() - start_ns_;
  return options_.budget_ns - std::min(spent, options_.budget_ns);
}

bool TuningRun::over(const Cell& cell) const {
  return !problem_.ok() || hooks_.stop() || left_ns() < kLeastRaceNs ||
         clock_.now_ns() >= cell.until_ns;
}

Status TuningRun::run(const std::vector<CellSpec>& specs, std::vector<MeasuredCell>& cells) {
  start_ns_ = clock_.now_ns();
  std::vector<Cell> planned;
  for (const CellSpec& spec : specs) {
    const Result<Operator> op = runtime_.op(spec.op);
    if (!op) return op.error();
    Result<CellPlan> plan = CellPlan::make(*op, spec, options_.threads);
    if (!plan) return plan.error();
    Cell& cell = planned.emplace_back(spec, std::move(*plan));
    cell.result.op = spec.op;
    cell.result.cell = cell.plan.cell();
  }
  progress_.cells = planned.size();
  // A third of the time is for kernels that opmux does not run.
  const uint64_t kept_ns = hooks_.externals ? options_.budget_ns / 3 : 0;
  Status status;
  for (Cell& cell : planned) {
    // Each cell gets its share of the time that is left.
    const uint64_t left = left_ns() - std::min(left_ns(), kept_ns);
    cell.until_ns = clock_.now_ns() + left / (planned.size() - progress_.done);
    status = measure_cell(cell);
    if (!status.ok()) break;
    ++progress_.done;
    hooks_.finished(cell.result);
    if (!problem_.ok()) break;
  }
  const size_t measured = progress_.done;
  if (status.ok() && problem_.ok() && hooks_.externals && !hooks_.stop()) add_externals(planned);
  for (size_t i = 0; i < measured; ++i) cells.push_back(std::move(planned[i].result));
  return status.ok() ? problem_ : status;
}

void TuningRun::add_externals(std::vector<Cell>& cells) {
  const std::vector<ExternalKernel> kernels = hooks_.externals();
  const auto kernel_of = [&](const Cell& cell) {
    return std::ranges::find(kernels, cell.result.op, &ExternalKernel::op);
  };
  auto waiting = std::ranges::count_if(
      cells, [&](const Cell& cell) { return kernel_of(cell) != kernels.end(); });
  progress_.cells = static_cast<size_t>(waiting);
  progress_.done = 0;
  for (Cell& cell : cells) {
    const auto kernel = kernel_of(cell);
    if (kernel == kernels.end()) continue;
    cell.until_ns = clock_.now_ns() + left_ns() / static_cast<uint64_t>(waiting--);
    for (const MeasuredRange& range : cell.result.ranges) add_external(cell, range, *kernel);
    ++progress_.done;
    if (!problem_.ok()) return;
  }
}

Status TuningRun::measure_cell(Cell& cell) {
  const tune::race::Environment environment{
      clock_, noise_, [order = std::make_shared<std::mt19937_64>(1)] { return (*order)(); }};
  cell.race =
      std::make_unique<CellRace>(runtime_, builds_, cell.plan, environment, options_.cold_bytes);
  const Result<Candidates> first = cell.race->candidates(cell.plan.range().first);
  if (!first) return first.error();
  cell.result.schema_hash = first->schema_hash;
  Crossovers found;
  const tune::Range& range = cell.plan.range();
  if (range.dim.empty()) {
    const std::optional<RaceOutcome> outcome = outcome_at(cell, 0);
    found.complete = outcome.has_value();
    if (outcome) found.stretches.push_back({0, 0, {0}, *outcome});
  } else {
    std::mt19937_64 random(seed_of(name_of(cell.result) + range.dim));
    found = find_crossovers(
        range.first, range.last, [&](int64_t value) { return outcome_at(cell, value); },
        [&] { return random(); });
  }
  add_ranges(cell, found);
  cell.result.checked = found.checked;
  cell.result.disagreed = found.disagreed;
  cell.result.complete &= found.complete;
  for (const auto& [id, why] : cell.race->left_out())
    cell.result.notes.push_back(base::concat(id, " was left out: ", why));
  if (!cell.error.empty()) cell.result.notes.push_back(cell.error);
  cell.race.reset();  // it refers to `environment`
  return {};
}

std::optional<RaceOutcome> TuningRun::outcome_at(Cell& cell, int64_t value) {
  std::optional<MeasuredPoint> point = point_at(cell, value);
  if (!point) return {};
  return cell.points.insert_or_assign(value, std::move(*point)).first->second.outcome();
}

std::optional<MeasuredPoint> TuningRun::point_at(Cell& cell, int64_t value) {
  const tune::Range& range = cell.plan.range();
  progress_.racing = name_of(cell.result);
  if (!range.dim.empty()) progress_.racing += base::concat(", ", range.dim, "=", value);
  progress_.left_ns = left_ns();
  hooks_.progress(progress_);
  const Result<Candidates> candidates = cell.race->candidates(value);
  if (!candidates) {
    cell.error = candidates.error().to_string();
    return {};
  }
  const PointKey key{options_.machine, cell.result.op, cell.result.schema_hash, cell.result.cell,
                     range.dim,        value,          candidates->builds};
  if (options_.resume) {
    Result<std::optional<MeasuredPoint>> known = workbench_.find(key);
    if (!known) problem_ = known.error();
    if (known && known->has_value()) {
      ++cell.result.reused;
      return *std::move(known);
    }
  }
  if (over(cell)) return {};
  CellRace::Limits limits;
  limits.most_time_ns = std::min(kMostRaceNs, left_ns());
  limits.stop = hooks_.stop;
  Result<MeasuredPoint> point = cell.race->measure(value, *candidates, limits);
  if (!point) {
    if (!hooks_.stop()) cell.error = point.error().to_string();
    return {};
  }
  ++cell.result.races;
  if (point->is_lost()) return std::move(*point);  // a resumed run measures it again
  problem_ = workbench_.keep(key, *point);
  if (!problem_.ok()) return {};
  return std::move(*point);
}

void TuningRun::add_ranges(Cell& cell, const Crossovers& found) {
  for (const Stretch& whole : found.stretches)
    for (const Stretch& stretch : parts_of(whole, cell.points)) add_range(cell, stretch);
}

void TuningRun::add_range(Cell& cell, const Stretch& stretch) {
  std::vector<MeasuredPoint> points;
  for (const int64_t value : stretch.measured) points.push_back(cell.points.at(value));
  MeasuredRange range;
  range.range = {cell.plan.range().dim, stretch.first, stretch.last};
  range.baseline = points.front().baseline;
  range.rows = rows_of(cell.result.cell, range.range, points);
  for (const MeasuredPoint& point : points) {
    if (!point.is_lost()) continue;
    ++range.lost;
    range.noise = point.noise;
  }
  confirm(cell, range, stretch.measured);
  for (tune::TuningRow& row : range.rows) {
    row.tool = options_.tool;
    row.host = options_.host;
  }
  cell.result.ranges.push_back(std::move(range));
}

void TuningRun::add_external(Cell& cell, const MeasuredRange& range, const ExternalKernel& kernel) {
  const tune::TuningRow* const row = winning_row(range.rows);
  const int64_t first = range.range.first;
  const tune::Build& runs = row == nullptr ? range.baseline : row->implementation;
  ExternalRace asked{kernel, runs, {}, options_.threads, kMostRaceNs, options_.cold_bytes};
  std::map<int64_t, MeasuredPoint> points;
  const auto measure = [&](int64_t value) -> std::optional<RaceOutcome> {
    asked.words = words_of(cell.spec, range.range, value);
    std::optional<MeasuredPoint> point = external_point(cell, asked, value);
    if (!point) return {};
    return points.insert_or_assign(value, std::move(*point)).first->second.outcome();
  };
  Crossovers found;
  if (range.range.dim.empty() || first == range.range.last) {
    if (const auto outcome = measure(first))
      found.stretches.push_back({first, first, {first}, *outcome});
  } else {
    std::mt19937_64 random(seed_of(name_of(cell.result) + kernel.build.id));
    found = find_crossovers(first, range.range.last, measure, [&] { return random(); });
  }
  cell.result.complete &= found.complete;
  for (const Stretch& stretch : found.stretches) {
    std::vector<MeasuredPoint> measured;
    for (const int64_t value : stretch.measured) measured.push_back(points.at(value));
    ExternalRange made{
        {range.range.dim, stretch.first, stretch.last}, kernel.build.id, runs.id, {}};
    made.rows = rows_of(cell.result.cell, made.range, measured);
    for (tune::TuningRow& one : made.rows) {
      one.tool = options_.tool;
      one.host = options_.host;
    }
    cell.result.externals.push_back(std::move(made));
  }
}

std::optional<MeasuredPoint> TuningRun::external_point(Cell& cell, const ExternalRace& asked,
                                                       int64_t value) {
  progress_.racing =
      base::concat(name_of(cell.result), ", ", asked.kernel.build.id, " and ", asked.against.id);
  progress_.left_ns = left_ns();
  hooks_.progress(progress_);
  const PointKey key{options_.machine,
                     cell.result.op,
                     cell.result.schema_hash,
                     cell.result.cell,
                     cell.plan.range().dim,
                     value,
                     {asked.against, asked.kernel.build}};
  if (options_.resume) {
    Result<std::optional<MeasuredPoint>> known = workbench_.find(key);
    if (!known) problem_ = known.error();
    if (known && known->has_value()) {
      ++cell.result.reused;
      return *std::move(known);
    }
  }
  if (over(cell)) {
    const std::string note =
        base::concat(asked.kernel.build.id, " was not compared everywhere: no time was left");
    if (std::ranges::find(cell.result.notes, note) == cell.result.notes.end())
      cell.result.notes.push_back(note);
    return {};
  }
  ExternalRace limited = asked;
  limited.most_time_ns = std::min(kMostRaceNs, left_ns());
  Result<MeasuredPoint> point = hooks_.race_external(limited);
  if (!point) {
    cell.result.notes.push_back(
        base::concat(asked.kernel.build.id, " was left out: ", point.error().message()));
    return {};
  }
  ++cell.result.races;
  if (point->is_lost()) return std::move(*point);
  problem_ = workbench_.keep(key, *point);
  if (!problem_.ok()) return {};
  return std::move(*point);
}

/// Races the baseline and the fastest other implementation again, at the middle of the values.
void TuningRun::confirm(Cell& cell, MeasuredRange& range, const std::vector<int64_t>& measured) {
  if (range.rows.empty() || !hooks_.confirm || hooks_.stop() || left_ns() < kMostRaceNs) return;
  const tune::TuningRow& other =
      *std::ranges::min_element(range.rows, {}, &tune::TuningRow::log_ratio);
  const int64_t value = measured[measured.size() / 2];
  progress_.racing = base::concat(name_of(cell.result), ", ", other.implementation.id, " and ",
                                  range.baseline.id, " in a new process");
  progress_.left_ns = left_ns();
  hooks_.progress(progress_);
  const std::optional<MeasuredPoint> again =
      hooks_.confirm(cell.spec, value, {range.baseline.id, other.implementation.id});
  if (again) add_confirmation(range.rows, *again);
}

}  // namespace opmux::tuner
