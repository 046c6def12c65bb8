// Compares what runs with measured rows, and without them, with the fastest implementation. See
// --help.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "base/system/machine_facts.hpp"
#include "processor.hpp"
#include "regret/cells.hpp"
#include "regret/oracle.hpp"
#include "regret/regret.hpp"
#include "tune/race/system_noise.hpp"
#include "tuner/bundle_writer.hpp"
#include "tuner/measure/tuning_run.hpp"

namespace opmux::bench {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

struct Settings {
  bool check = false;
  double slack = 1;
  std::string op;
  uint32_t threads = 1;
  uint32_t rounds = 200;
  double seconds = 60;
};

int usage(int code) {
  std::puts(
      "usage: bench_regret [--check] [--slack F] [--op NAME] [--threads N] [--rounds N] [--seconds "
      "S]\n"
      "Tunes each cell as `opmux tune run` does, lets a runtime choose with the bundle and "
      "without\n"
      "it, and compares both choices with the fastest of all implementations, which it finds by\n"
      "running them in turn. Regret is how much longer a choice takes than the fastest.\n"
      "  --check      exits with 1 if the mean regret of cells with a verdict is above 0.5 %, its\n"
      "               p99 above 2 %, its worst above 3 %, if less than 80 % of the cells with a\n"
      "               proven gap of 3 % have a verdict, or if rows make a cell slower by 1 %\n"
      "  --slack F    multiplies the limits (for noisy machines)\n"
      "  --op NAME    measures this operator only\n"
      "  --threads N  threads of the calls, default 1\n"
      "  --rounds N   rounds in which every implementation runs once, default 200\n"
      "  --seconds S  for the rounds of one cell, default 60");
  return code;
}

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      settings.check = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* const value = argv[++i];
    if (word == "--slack") {
      settings.slack = std::atof(value);
    } else if (word == "--op") {
      settings.op = value;
    } else if (word == "--threads") {
      settings.threads = static_cast<uint32_t>(std::atoi(value));
    } else if (word == "--rounds") {
      settings.rounds = static_cast<uint32_t>(std::atoi(value));
    } else if (word == "--seconds") {
      settings.seconds = std::atof(value);
    } else {
      return false;
    }
  }
  return settings.slack > 0 && settings.threads > 0 && settings.rounds >= 8 && settings.seconds > 0;
}

/// A folder for one measurement; removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "bench_regret_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string at(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

Runtime make_runtime(uint32_t threads) {
  return Runtime::create({.threads = static_cast<int>(threads)}).value();
}

std::string short_id(const std::string& id) { return id.substr(id.find('/') + 1); }

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        runtime_(make_runtime(settings.threads)),
        builds_(make_runtime(settings.threads)),
        noise_(clock_, settings.threads),
        environment_{clock_, noise_, [this] { return order_(); }} {
    run_.threads = settings.threads;
    run_.budget_ns = 600 * kSecond;
    run_.tool = OPMUX_VERSION;
    const base::MachineFacts facts = base::read_machine_facts();
    run_.cold_bytes = 2 * facts.last_level_cache;
    run_.machine = tune::describe_machine(facts);
    oracle_.rounds = settings.rounds;
    oracle_.most_seconds = settings.seconds;
    oracle_.cold_bytes = run_.cold_bytes;
  }

  RegretOfCell measure(const tuner::CellSpec& spec) {
    RegretOfCell cell;
    try {
      const Operator op = runtime_.op(spec.op).value();
      const tuner::CellPlan plan = tuner::CellPlan::make(op, spec, settings_.threads).value();
      cell.name = spec.op + " " + tune::text_of(plan.cell());
      const tuner::MeasuredCell tuned = tune_cell(spec);
      cell.untuned = chosen(runtime_, plan, spec.op);
      cell.tuned = chosen_with(tuned, plan, spec.op);
      cell.has_verdict = has_verdict(tuned, cell);
      judge(
          Oracle::measure(runtime_, plan, contestants(plan, tuned), oracle_, environment_).value(),
          cell);
    } catch (const std::exception& error) {
      cell.problem = error.what();
    }
    return cell;
  }

 private:
  tuner::MeasuredCell tune_cell(const tuner::CellSpec& spec) {
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

  /// The implementation that a call runs in this runtime, without "op/".
  static std::string chosen(Runtime& runtime, const tuner::CellPlan& plan, const std::string& op) {
    const conformance::Case shapes = plan.shapes_at(plan.range().first);
    const Operator here = runtime.op(op).value();
    const auto call = tuner::CellCall::make(runtime, here, shapes, {.most_copies = 1}).value();
    return short_id(here.explain_arguments(call->arguments(0)).chosen);
  }

  /// The implementation that a call runs in a new runtime that reads the rows from a bundle.
  std::string chosen_with(const tuner::MeasuredCell& tuned, const tuner::CellPlan& plan,
                          const std::string& op) const {
    const tune::TuningSet set = tuner::rows_of({tuned}, run_.machine);
    if (set.operators.empty() || set.operators.front().rows.empty()) {
      Runtime runtime = make_runtime(settings_.threads);
      return chosen(runtime, plan, op);
    }
    const Folder folder;
    const std::string path = folder.at("cell.bundle");
    std::ofstream(path, std::ios::binary) << tuner::write_bundle(set).value();
    ::setenv("OPMUX_TUNING", path.c_str(), 1);
    Runtime runtime = make_runtime(settings_.threads);
    ::unsetenv("OPMUX_TUNING");
    const std::string id = chosen(runtime, plan, op);
    const tune::TuningRow* const row = tuner::winning_row(tuned.ranges.front().rows);
    const std::string expected =
        row == nullptr ? tuned.ranges.front().baseline : row->implementation.id;
    if (id != expected)
      throw std::runtime_error("the rows are for " + expected + ", but a call runs " + id);
    return id;
  }

  static bool has_verdict(const tuner::MeasuredCell& tuned, const RegretOfCell& cell) {
    if (tuned.ranges.empty()) return false;
    const std::vector<tune::TuningRow>& rows = tuned.ranges.front().rows;
    if (cell.tuned != cell.untuned) return true;
    return std::ranges::none_of(rows, [](const tune::TuningRow& row) {
      return tune::verdict_of(row.log_ratio, row.low, row.high) == tune::Verdict::unclear;
    });
  }

  /// The implementations that accept the call, without those that gave wrong results.
  std::vector<std::string> contestants(const tuner::CellPlan& plan,
                                       const tuner::MeasuredCell& tuned) {
    const conformance::Case shapes = plan.shapes_at(plan.range().first);
    const auto call =
        tuner::CellCall::make(runtime_, plan.op(), shapes, {.most_copies = 1}).value();
    std::vector<std::string> ids;
    const tuner::Candidates candidates = builds_.candidates(plan.op(), call->arguments(0)).value();
    for (const tune::Build& build : candidates.builds) {
      const bool wrong = std::ranges::any_of(tuned.notes, [&](const std::string& note) {
        return note.starts_with(build.id + " was left out");
      });
      if (!wrong) ids.push_back(build.id);
    }
    return ids;
  }

  const Settings& settings_;
  base::SteadyClock clock_;
  std::mt19937_64 order_{1};
  Runtime runtime_;
  tuner::BuildFinder builds_;
  tune::race::SystemNoise noise_;
  tune::race::Environment environment_;
  tuner::RunOptions run_;
  OracleOptions oracle_;
};

int measure_all(const Settings& settings) {
  // Bundles of this user would decide instead of the score.
  const Folder state;
  ::setenv("OPMUX_STATE_DIR", state.at("state").c_str(), 1);
  ::unsetenv("OPMUX_TUNING");
  std::printf("%s\n", processor_name().c_str());
  Bench bench(settings);
  std::vector<RegretOfCell> cells;
  for (const tuner::CellSpec& spec : regret_cells(settings.op)) {
    cells.push_back(bench.measure(spec));
    std::printf("%s\n", line_of(cells.back()).c_str());
    std::fflush(stdout);
  }
  if (cells.empty()) throw std::runtime_error("no cells of operator " + settings.op);
  const RegretSummary summary = summary_of(cells);
  std::fputs(text_of(summary).c_str(), stdout);
  size_t not_judged = 0;
  for (const RegretOfCell& cell : cells) not_judged += cell.problem.empty() ? 0 : 1;
  std::vector<std::string> missed = misses(summary, settings.slack);
  if (not_judged > 0) missed.push_back(std::to_string(not_judged) + " cells were not judged");
  for (const std::string& miss : missed) std::printf("MISS %s\n", miss.c_str());
  if (missed.empty()) std::puts("ok   every limit holds");
  return settings.check && !missed.empty() ? 1 : 0;
}

}  // namespace
}  // namespace opmux::bench

int main(int argc, char** argv) try {
  opmux::bench::Settings settings;
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) return opmux::bench::usage(0);
  if (!opmux::bench::parse(argc, argv, settings)) return opmux::bench::usage(2);
  return opmux::bench::measure_all(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_regret: %s\n", error.what());
  return 1;
}
