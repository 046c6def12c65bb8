#include "regret/cell_tuner.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "base/system/machine_facts.hpp"
#include "tuner/bundle_writer.hpp"
#include "tuner/measure/cell_call.hpp"

namespace opmux::bench {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Runtime make_runtime(uint32_t threads) {
  return Runtime::create({.threads = static_cast<int>(threads)}).value();
}

}  // namespace

Folder::Folder() {
  path_ = (std::filesystem::temp_directory_path() / "bench_regret_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

CellTuner::CellTuner(uint32_t threads, const OracleOptions& oracle)
    : threads_(threads),
      runtime_(make_runtime(threads)),
      builds_(make_runtime(threads)),
      noise_(clock_, threads),
      environment_{clock_, noise_, [this] { return order_(); }},
      oracle_(oracle) {
  run_.threads = threads;
  run_.budget_ns = 600 * kSecond;
  run_.tool = OPMUX_VERSION;
  const base::MachineFacts facts = base::read_machine_facts();
  run_.cold_bytes = oracle_.cold_bytes = 2 * facts.last_level_cache;
  run_.machine = tune::describe_machine(facts);
}

tuner::CellPlan CellTuner::plan_of(const tuner::CellSpec& spec) {
  return tuner::CellPlan::make(runtime_.op(spec.op).value(), spec, threads_).value();
}

tuner::MeasuredCell CellTuner::tune(const tuner::CellSpec& spec) {
  const Folder folder;
  tuner::Workbench workbench = tuner::Workbench::open(folder.at("workbench.sqlite")).value();
  tuner::RunHooks hooks;
  hooks.progress = [](const tuner::RunProgress&) {};
  hooks.finished = [](const tuner::MeasuredCell&) {};
  hooks.stop = [] { return false; };
  tuner::TuningRun tuning(runtime_, builds_, workbench, clock_, noise_, run_, hooks);
  std::vector<tuner::MeasuredCell> cells;
  const Status status = tuning.run({spec}, cells);
  if (!status.ok()) throw std::runtime_error(status.to_string());
  return std::move(cells.front());
}

Runtime CellTuner::runtime_with(const tuner::MeasuredCell& tuned) const {
  const tune::TuningSet set = tuner::rows_of({tuned}, run_.machine);
  if (set.operators.empty() || set.operators.front().rows.empty()) return make_runtime(threads_);
  const Folder folder;  // the runtime keeps the bundle open
  const std::string path = folder.at("cell.bundle");
  std::ofstream(path, std::ios::binary) << tuner::write_bundle(set).value();
  ::setenv("OPMUX_TUNING", path.c_str(), 1);
  Runtime runtime = make_runtime(threads_);
  ::unsetenv("OPMUX_TUNING");
  return runtime;
}

std::string CellTuner::untuned_choice(const tuner::CellPlan& plan, int64_t value) {
  return choice(runtime_, plan, value);
}

std::string CellTuner::choice(Runtime& runtime, const tuner::CellPlan& plan, int64_t value) {
  const conformance::Case shapes = plan.shapes_at(value);
  const Operator here = runtime.op(plan.op().name()).value();
  const auto call = tuner::CellCall::make(runtime, here, shapes, {.most_copies = 1}).value();
  const std::string id = here.explain_arguments(call->arguments(0)).chosen;
  return id.substr(id.find('/') + 1);
}

Oracle CellTuner::ask_oracle(const tuner::CellPlan& plan, const tuner::MeasuredCell& tuned,
                             int64_t value) {
  return Oracle::measure(runtime_, plan, value, contestants(plan, tuned, value), oracle_,
                         environment_)
      .value();
}

std::vector<std::string> CellTuner::contestants(const tuner::CellPlan& plan,
                                                const tuner::MeasuredCell& tuned, int64_t value) {
  const conformance::Case shapes = plan.shapes_at(value);
  const auto call = tuner::CellCall::make(runtime_, plan.op(), shapes, {.most_copies = 1}).value();
  const tuner::Candidates candidates = builds_.candidates(plan.op(), call->arguments(0)).value();
  std::vector<std::string> ids;
  for (const tune::Build& build : candidates.builds) {
    const bool wrong = std::ranges::any_of(tuned.notes, [&](const std::string& note) {
      return note.starts_with(build.id + " was left out");
    });
    if (!wrong) ids.push_back(build.id);
  }
  return ids;
}

const tuner::MeasuredRange* range_with(const tuner::MeasuredCell& tuned, int64_t value) {
  const auto found = std::ranges::find_if(tuned.ranges, [&](const tuner::MeasuredRange& each) {
    return each.range.dim.empty() || each.range.contains(value);
  });
  return found == tuned.ranges.end() ? nullptr : &*found;
}

std::string expected_choice(const tuner::MeasuredRange& range) {
  const tune::TuningRow* const row = tuner::winning_row(range.rows);
  return row == nullptr ? range.baseline.id : row->implementation.id;
}

bool has_verdict(const tuner::MeasuredRange& range) {
  if (tuner::winning_row(range.rows) != nullptr) return true;
  return std::ranges::none_of(range.rows, [](const tune::TuningRow& row) {
    return tune::verdict_of(row) == tune::Verdict::unclear;
  });
}

}  // namespace opmux::bench
