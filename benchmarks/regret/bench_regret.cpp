// Compares what runs with measured rows, and without them, with the fastest implementation. See
// --help.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "processor.hpp"
#include "regret/cell_tuner.hpp"
#include "regret/cells.hpp"
#include "regret/regret.hpp"
#include "regret/repeats.hpp"
#include "regret/transfer.hpp"

namespace opmux::bench {
namespace {

struct Settings {
  bool check = false, choices = false;
  double slack = 1;
  std::string op;
  uint32_t threads = 1;
  uint32_t rounds = 200;
  double seconds = 60;
  size_t repeat = 0, transfer = 0;
  std::string program;
};

constexpr size_t kRepeatedCells = 20;

int usage(int code) {
  std::puts(
      "usage: bench_regret [--repeat N | --transfer N] [--check] [--slack F] [--op NAME]\n"
      "                    [--threads N] [--rounds N] [--seconds S]\n"
      "Tunes each cell as `opmux tune run` does, lets a runtime choose with the bundle and\n"
      "without it, and compares both choices with the fastest of all implementations, which it\n"
      "finds by running them in turn. Regret is how much longer a choice takes than the fastest.\n"
      "  --repeat N    tunes 20 cells N times, each time in a new process, and counts how often "
      "the\n"
      "                choices differ\n"
      "  --transfer N  tunes ranges of sizes, and compares the choices at N random sizes in them\n"
      "  --check       exits with 1 if a limit is missed. Without --repeat and --transfer: the "
      "mean\n"
      "                regret of cells with a verdict is above 0.5 %, its p99 above 2 %, its "
      "worst\n"
      "                above 3 %, less than 80 % of the cells with a proven gap of 3 % have a\n"
      "                verdict, or rows make a cell slower by 1 %. With --repeat: more than 2 % "
      "of\n"
      "                the choices differ, or one in a cell with a gap of 3 %. With --transfer: "
      "the\n"
      "                p95 of the regret is above 1 %\n"
      "  --slack F     multiplies the limits (for noisy machines)\n"
      "  --op NAME     measures this operator only\n"
      "  --threads N   threads of the calls, default 1\n"
      "  --rounds N    rounds in which every implementation runs once, default 200\n"
      "  --seconds S   for the rounds of one cell, default 60");
  return code;
}

bool parse(int argc, char** argv, Settings& settings) {
  settings.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check" || word == "--choices") {
      (word == "--check" ? settings.check : settings.choices) = true;
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
    } else if (word == "--repeat") {
      settings.repeat = static_cast<size_t>(std::atoi(value));
      if (settings.repeat == 0) return false;
    } else if (word == "--transfer") {
      settings.transfer = static_cast<size_t>(std::atoi(value));
      if (settings.transfer == 0) return false;
    } else {
      return false;
    }
  }
  if (settings.repeat > 0 && settings.transfer > 0) return false;
  return settings.slack > 0 && settings.threads > 0 && settings.rounds >= 8 && settings.seconds > 0;
}

OracleOptions oracle_of(const Settings& settings) {
  return {.rounds = settings.rounds, .most_seconds = settings.seconds};
}

void print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// Prints a summary and the limits that it misses; returns the exit code.
template <class Summary>
int conclude(const Settings& settings, const Summary& summary,
             const std::vector<std::string>& missed) {
  std::fputs(text_of(summary).c_str(), stdout);
  for (const std::string& miss : missed) std::printf("MISS %s\n", miss.c_str());
  if (missed.empty()) std::puts("ok   every limit holds");
  return settings.check && !missed.empty() ? 1 : 0;
}

RegretOfCell regret_of_cell(CellTuner& tuner, const tuner::CellSpec& spec) {
  RegretOfCell cell;
  try {
    const tuner::CellPlan plan = tuner.plan_of(spec);
    const int64_t value = plan.range().first;
    cell.name = spec.op + " " + tune::text_of(plan.cell());
    const tuner::MeasuredCell tuned = tuner.tune(spec);
    cell.untuned = tuner.untuned_choice(plan, value);
    Runtime runtime = tuner.runtime_with(tuned);
    cell.tuned = CellTuner::choice(runtime, plan, value);
    const tuner::MeasuredRange* const range = range_with(tuned, value);
    if (range != nullptr && cell.tuned != expected_choice(*range)) {
      throw std::runtime_error("the rows are for " + expected_choice(*range) +
                               ", but a call runs " + cell.tuned);
    }
    cell.has_verdict = range != nullptr && has_verdict(*range);
    judge(tuner.ask_oracle(plan, tuned, value), cell);
  } catch (const std::exception& error) {
    cell.problem = error.what();
  }
  return cell;
}

int measure_grid(const Settings& settings) {
  CellTuner tuner(settings.threads, oracle_of(settings));
  std::vector<RegretOfCell> cells;
  for (const tuner::CellSpec& spec : regret_cells(settings.op)) {
    cells.push_back(regret_of_cell(tuner, spec));
    print(line_of(cells.back()));
  }
  if (cells.empty()) throw std::runtime_error("no cells of operator " + settings.op);
  const RegretSummary summary = summary_of(cells);
  std::vector<std::string> missed = misses(summary, settings.slack);
  size_t not_judged = 0;
  for (const RegretOfCell& cell : cells) not_judged += cell.problem.empty() ? 0 : 1;
  if (not_judged > 0) missed.push_back(std::to_string(not_judged) + " cells were not judged");
  return conclude(settings, summary, missed);
}

/// Cells from the whole grid.
std::vector<tuner::CellSpec> repeated_cells(const Settings& settings) {
  const std::vector<tuner::CellSpec> all = regret_cells(settings.op);
  const size_t count = std::min(all.size(), kRepeatedCells);
  std::vector<tuner::CellSpec> cells;
  for (size_t i = 0; i < count; ++i) cells.push_back(all[i * all.size() / count]);
  return cells;
}

/// Tunes the repeated cells once and prints a line with the choice of each, for --repeat.
int print_choices(const Settings& settings) {
  CellTuner tuner(settings.threads, oracle_of(settings));
  for (const tuner::CellSpec& spec : repeated_cells(settings)) {
    const tuner::CellPlan plan = tuner.plan_of(spec);
    Runtime runtime = tuner.runtime_with(tuner.tune(spec));
    print(CellTuner::choice(runtime, plan, plan.range().first));
  }
  return 0;
}

/// The lines that a new process prints.
std::vector<std::string> lines_of_process(const std::string& command) {
  const auto close = [](FILE* file) { return ::pclose(file); };
  std::unique_ptr<FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::vector<std::string> lines;
  for (std::array<char, 256> line{}; std::fgets(line.data(), line.size(), pipe.get()) != nullptr;)
    lines.emplace_back(line.data(), std::strcspn(line.data(), "\n"));
  return lines;
}

int measure_repeats(const Settings& settings) {
  const std::vector<tuner::CellSpec> specs = repeated_cells(settings);
  std::vector<RepeatedCell> cells(specs.size());
  std::string command =
      settings.program + " --choices --threads " + std::to_string(settings.threads);
  if (!settings.op.empty()) command += " --op " + settings.op;
  for (size_t i = 0; i < settings.repeat; ++i) {
    const std::vector<std::string> choices = lines_of_process(command);
    if (choices.size() != cells.size())
      throw std::runtime_error("a process tuned " + std::to_string(choices.size()) + " cells");
    for (size_t at = 0; at < cells.size(); ++at) cells[at].choices.push_back(choices[at]);
  }
  CellTuner tuner(settings.threads, oracle_of(settings));
  for (size_t at = 0; at < cells.size(); ++at) {
    const tuner::CellPlan plan = tuner.plan_of(specs[at]);
    cells[at].name = specs[at].op + " " + tune::text_of(plan.cell());
    cells[at].gap = tuner.ask_oracle(plan, {}, plan.range().first).gap();
    print(line_of(cells[at]));
  }
  const RepeatSummary summary = summary_of(cells);
  return conclude(settings, summary, misses(summary, settings.slack));
}

/// Random sizes of one family, at which `count` choices are compared with the fastest.
void measure_family(CellTuner& tuner, const tuner::CellSpec& spec, size_t count,
                    std::mt19937_64& random, std::vector<TransferPoint>& points) {
  const tuner::CellPlan plan = tuner.plan_of(spec);
  const tuner::MeasuredCell tuned = tuner.tune(spec);
  const tune::Range& over = plan.range();
  Runtime runtime = tuner.runtime_with(tuned);
  std::uniform_int_distribution<int64_t> sizes(over.first, over.last);
  for (size_t i = 0; i < count; ++i) {
    const int64_t value = sizes(random);
    const tuner::MeasuredRange* const range = range_with(tuned, value);
    if (range == nullptr || !has_verdict(*range)) continue;
    TransferPoint point;
    point.name =
        spec.op + " " + tune::text_of(plan.cell()) + ", " + over.dim + "=" + std::to_string(value);
    point.chosen = CellTuner::choice(runtime, plan, value);
    const Oracle oracle = tuner.ask_oracle(plan, tuned, value);
    if (!oracle.has(point.chosen)) throw std::runtime_error(point.chosen + " cannot run");
    point.best = oracle.best();
    point.regret = regret_of(oracle.ratio(point.chosen, point.best).center);
    points.push_back(std::move(point));
    print(line_of(points.back()));
  }
}

int measure_transfer(const Settings& settings) {
  CellTuner tuner(settings.threads, oracle_of(settings));
  const std::vector<tuner::CellSpec> families = regret_families(settings.op);
  if (families.empty()) throw std::runtime_error("no ranges of operator " + settings.op);
  std::mt19937_64 random(1);
  std::vector<TransferPoint> points;
  for (size_t i = 0; i < families.size(); ++i) {
    const size_t from = i * settings.transfer / families.size();
    const size_t to = (i + 1) * settings.transfer / families.size();
    measure_family(tuner, families[i], to - from, random, points);
  }
  const TransferSummary summary = summary_of(points);
  return conclude(settings, summary, misses(summary, settings.slack));
}

int run(const Settings& settings) {
  // Bundles of this user would decide instead of the score.
  const Folder state;
  ::setenv("OPMUX_STATE_DIR", state.at("state").c_str(), 1);
  ::unsetenv("OPMUX_TUNING");
  if (settings.choices) return print_choices(settings);
  std::printf("%s\n", processor_name().c_str());
  if (settings.repeat > 0) return measure_repeats(settings);
  if (settings.transfer > 0) return measure_transfer(settings);
  return measure_grid(settings);
}

}  // namespace
}  // namespace opmux::bench

int main(int argc, char** argv) try {
  opmux::bench::Settings settings;
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) return opmux::bench::usage(0);
  if (!opmux::bench::parse(argc, argv, settings)) return opmux::bench::usage(2);
  return opmux::bench::run(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_regret: %s\n", error.what());
  return 1;
}
