#include "cli/tune_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>

#include "base/crypto.hpp"
#include "base/system/files.hpp"
#include "base/system/machine_facts.hpp"
#include "base/text.hpp"
#include "base/thread_pool.hpp"
#include "cli/process_option.hpp"
#include "cli/tune_aged.hpp"
#include "cli/tune_cells.hpp"
#include "cli/tune_progress.hpp"
#include "cli/tune_served.hpp"
#include "cli/tune_worker.hpp"
#include "tune/race/system_noise.hpp"
#include "tuner/bundle_writer.hpp"
#include "tuner/external_kernels.hpp"
#include "tuner/measure/tuning_run.hpp"
#include "tuner/overlay.hpp"

namespace opmux::cli {
namespace {

constexpr size_t kMostBundleBytes = size_t{256} << 20;
constexpr uint64_t kNanoseconds = 1'000'000'000;

struct TuneRunOptions {
  CellOptions cells;
  std::string output, worker, from_pid, page, python;
  uint32_t threads = 0;
  uint64_t budget = 120;
  bool resume = false, aged = false;
};

std::atomic<bool> stopped{false};

/// The first signal ends the run after what is being done; a second one ends the process.
void stop_at_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { stopped = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

/// A hash of the name of this host.
uint64_t host_hash() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string_view text(name.data());
  const std::string digest = base::sha256_hex(std::as_bytes(std::span(text)));
  uint64_t hash = 0;
  if (digest.size() >= 16) std::from_chars(digest.data(), digest.data() + 16, hash, 16);
  return hash;
}

/// The threads of calls that do not say how many they use.
uint32_t default_threads(const Runtime& runtime) {
  for (const SettingInfo& setting : runtime.settings()) {
    uint32_t threads = 0;
    const char* const end = setting.value.data() + setting.value.size();
    if (setting.key == "num_threads" &&
        std::from_chars(setting.value.data(), end, threads).ec == std::errc())
      return threads;
  }
  return static_cast<uint32_t>(base::ThreadPool::default_threads());
}

/// The folder for rows that were measured here. Prints the error if it cannot be made.
std::optional<std::string> tuning_folder() {
  const char* const given = std::getenv("OPMUX_STATE_DIR");
  const std::string store = base::store_folder(given == nullptr ? "" : given);
  if (store.empty()) {
    wrong_use("there is no folder to keep measurements in; set OPMUX_STATE_DIR");
    return {};
  }
  const std::string folder = store + "/tuning";
  const Status made = base::make_private_folder(folder);
  if (made.ok()) return folder;
  wrong_use(made.message());
  return {};
}

/// Waits for another tuner until the budget of this one would have been spent.
base::FileLock lock_folder(const std::string& folder, uint64_t budget) {
  const std::string path = folder + "/lock";
  base::FileLock lock(path, 0);
  if (lock || errno != EWOULDBLOCK) return lock;
  std::cerr << "opmux: another tuner measures on this machine; waiting for it" << std::endl;
  return base::FileLock(path, static_cast<int>(std::min<uint64_t>(budget, 1'000'000) * 1000));
}

/// The rows that the bundle has already; none if there is no file. Prints the error.
std::optional<tune::TuningSet> rows_in(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return tune::TuningSet();
  const Result<std::string> bytes = base::read_given(path, kMostBundleBytes);
  if (!bytes) {
    wrong_use(bytes.error().message());
    return {};
  }
  const Result<tune::Bundle> bundle = tune::Bundle::open(std::as_bytes(std::span(*bytes)));
  Result<tune::TuningSet> set = bundle ? bundle->read_all() : bundle.error();
  if (!set) {
    wrong_use(base::concat(path, ": ", set.error().message(), "; move it away to measure anew"));
    return {};
  }
  // Rows that were measured by other rules cannot be in one bundle with new ones.
  if (set->measurement != tune::kMeasurement) return tune::TuningSet();
  return std::move(*set);
}

/// Writes the bundle with the rows that were measured now. Returns an exit code.
int write_rows(const std::string& path, tune::TuningSet before,
               const std::vector<tuner::MeasuredCell>& cells, const tune::Machine& machine) {
  const tune::TuningSet now = rows_of(cells, machine);
  size_t measured = 0, all = 0;
  for (const tune::OperatorRows& one : now.operators) measured += one.rows.size();
  if (measured == 0) {
    std::cout << "no rows were measured, so that " << path << " was not written\n";
    return kFound;
  }
  tune::TuningSet set = tuner::overlay(std::move(before), now);
  for (const tune::OperatorRows& one : set.operators) all += one.rows.size();
  const Result<std::string> bytes = tuner::write_bundle(std::move(set));
  if (!bytes) return wrong_use(bytes.error().message());
  if (!base::replace_file(path, *bytes, 0644))
    return wrong_use(base::concat("cannot write ", path, ": ", std::strerror(errno)));
  std::cout << "wrote " << path << ": " << measured << (measured == 1 ? " row" : " rows")
            << " measured now, " << all << " in all\n";
  return kFine;
}

/// Sets the facts of this machine and the threads.
tuner::RunOptions run_options(const TuneRunOptions& options, uint32_t threads) {
  const base::MachineFacts facts = base::read_machine_facts();
  tuner::RunOptions run;
  run.threads = threads;
  run.budget_ns = options.budget * kNanoseconds;
  run.resume = options.resume;
  run.tool = OPMUX_VERSION;
  run.host = host_hash();
  run.cold_bytes = 2 * facts.last_level_cache;
  run.machine = tune::describe_machine(facts);
  return run;
}

/// Measures and writes. Returns an exit code.
int measure(const TuneRunOptions& options, Runtime& runtime, const std::vector<AskedCell>& asked,
            uint32_t threads, tuner::ExternalKernels* externals) {
  const std::optional<std::string> folder = tuning_folder();
  if (!folder) return kWrongUse;
  const std::string path =
      options.output.empty() ? base::concat(*folder, "/local.bundle") : options.output;
  const base::FileLock lock = lock_folder(*folder, options.budget);
  if (!lock) {
    return wrong_use(
        base::concat("cannot lock ", *folder, ": ",
                     errno == EWOULDBLOCK ? "another tuner still measures" : std::strerror(errno)));
  }
  std::optional<tune::TuningSet> before = rows_in(path);
  if (!before) return kWrongUse;
  Result<tuner::Workbench> workbench = tuner::Workbench::open(*folder + "/workbench.sqlite");
  if (!workbench) return wrong_use(workbench.error().message());
  std::optional<Runtime> other = make_runtime();
  if (!other) return kWrongUse;
  tuner::BuildFinder builds(std::move(*other));

  stop_at_signals();
  std::vector<tuner::CellSpec> specs;
  for (const AskedCell& cell : asked) specs.push_back(cell.spec);
  TuneProgress progress;
  tuner::RunHooks hooks;
  hooks.progress = [&](const tuner::RunProgress& now) { progress.show(now); };
  hooks.finished = [&](const tuner::MeasuredCell& cell) { progress.finished(cell); };
  hooks.stop = [] { return stopped.load(); };
  hooks.confirm = [&](const tuner::CellSpec& spec, int64_t value,
                      const std::vector<std::string>& ids) {
    return race_again(asked[static_cast<size_t>(&spec - specs.data())], value, ids, threads);
  };
  if (externals != nullptr) {
    hooks.externals = [&] {
      Result<std::vector<tuner::ExternalKernel>> kernels = externals->kernels();
      if (kernels) return *std::move(kernels);
      progress.clear();
      std::cerr << "opmux: " << kernels.error().message() << std::endl;
      return std::vector<tuner::ExternalKernel>();
    };
    hooks.race_external = [&](const tuner::ExternalRace& race) { return externals->race(race); };
  }
  const base::SteadyClock clock;
  tune::race::SystemNoise noise(clock, threads);
  const tuner::RunOptions run = run_options(options, threads);
  tuner::TuningRun tuning(runtime, builds, *workbench, clock, noise, run, hooks);
  std::vector<tuner::MeasuredCell> cells;
  const Status status = tuning.run(specs, cells);
  progress.clear();
  for (const tuner::MeasuredCell& cell : cells) std::cout << report_of(cell);
  const int written =
      cells.empty() ? kFine : write_rows(path, std::move(*before), cells, run.machine);
  if (!status.ok()) return wrong_use(status.message());
  if (stopped) std::cout << "stopped; --resume continues\n";
  return written;
}

/// Whether all cells can be planned, before anything is measured.
Status check_cells(const Runtime& runtime, const std::vector<AskedCell>& asked) {
  for (const AskedCell& cell : asked) {
    const Result<Operator> op = runtime.op(cell.spec.op);
    if (!op) return op.error();
    const Result<tuner::CellPlan> plan = tuner::CellPlan::make(*op, cell.spec, 1);
    if (!plan) return plan.error();
  }
  return {};
}

/// The cells of aged rows, or those of the process that the options name.
Result<FoundCells> find_cells(const TuneRunOptions& options, const Runtime& runtime) {
  if (options.aged) {
    const tune::Machine here = tune::describe_machine(base::read_machine_facts());
    return aged_cells(runtime, here, options.threads);
  }
  ProcessOption from;
  from.pid = options.from_pid;
  from.page = options.page;
  const Result<ProcessState> process = read_process(from);
  if (!process) return process.error();
  return served_cells(*process, runtime, options.threads);
}

/// Starts the Python worker if there is an interpreter for it. `only_there` are implementations
/// that only the sampled process has. False if the worker was asked for and does not start.
bool start_externals(const std::string& python, const std::vector<std::string>& only_there,
                     std::optional<tuner::ExternalKernels>& externals) {
  if (python.empty()) {
    if (!only_there.empty()) {
      std::cerr << "opmux: not measured, because only the process has them: "
                << base::join(only_there, ", ")
                << "; --python with the interpreter of its environment measures kernels of vLLM"
                << std::endl;
    }
    return true;
  }
  Result<tuner::ExternalKernels> started = tuner::ExternalKernels::start(python);
  if (!started) {
    wrong_use(started.error().message());
    return false;
  }
  externals = std::move(*started);
  return true;
}

int run(const TuneRunOptions& options) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of the size of files is an error of write() then
  std::signal(SIGPIPE, SIG_IGN);  // so is the end of the Python worker
  std::optional<Runtime> runtime = make_runtime({.threads = static_cast<int>(options.threads)});
  if (!runtime) return kWrongUse;
  const bool find = options.aged || !options.from_pid.empty() || !options.page.empty();
  Result<std::vector<AskedCell>> asked = options.cells.read(*runtime, !find);
  if (!asked) return wrong_use(asked.error().message());
  uint32_t threads = options.threads;
  std::vector<std::string> only_there;
  if (find) {
    Result<FoundCells> found = find_cells(options, *runtime);
    if (!found) return wrong_use(found.error().message());
    if (!found->note.empty()) std::cerr << "opmux: left out: " << found->note << std::endl;
    only_there = std::move(found->only_there);
    threads = found->threads;
    std::ranges::move(found->cells, std::back_inserter(*asked));
    if (asked->empty()) {
      std::cout << (found->note.empty() ? "no rows are aged\n" : "no other rows are aged\n");
      return kFine;
    }
    if (options.threads == 0) runtime = make_runtime({.threads = static_cast<int>(threads)});
    if (!runtime) return kWrongUse;
  }
  if (const Status status = check_cells(*runtime, *asked); !status.ok())
    return wrong_use(status.message());
  if (threads == 0) threads = default_threads(*runtime);
  if (!options.worker.empty())
    return work_on_race(*runtime, asked->front(), options.worker, threads);
  std::optional<tuner::ExternalKernels> externals;
  if ((!find || !only_there.empty()) && !start_externals(options.python, only_there, externals))
    return kWrongUse;
  return measure(options, *runtime, *asked, threads, externals ? &*externals : nullptr);
}

}  // namespace

void add_tune_run(CLI::App& tune, Action& action) {
  auto options = std::make_shared<TuneRunOptions>();
  CLI::App* const command = tune.add_subcommand(
      "run", "Measure implementations on this machine and write the rows to a bundle");
  options->cells.add_to(*command);
  CLI::Option* const pid = command->add_option(
      "--from-pid", options->from_pid,
      "measure the calls in which this process spends its time; it needs OPMUX_STATE_PAGE=1");
  pid->type_name("PID");
  CLI::Option* const page =
      command->add_option("--page", options->page, "the same from a copy of its status file");
  page->type_name("FILE")->excludes(pid);
  command
      ->add_flag("--aged", options->aged,
                 "measure rows again that were measured with another kernel or microcode")
      ->excludes(pid)
      ->excludes(page);
  command
      ->add_option("--threads", options->threads,
                   "threads of the calls; default as many as calls of this environment have")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_option("--budget", options->budget, "seconds for everything, default 120")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--resume", options->resume,
                    "use what an earlier run measured with the same builds on this machine");
  command
      ->add_option("--output", options->output,
                   "the bundle to write; default tuning/local.bundle in the folder of the state")
      ->type_name("FILE");
  command
      ->add_option("--python", options->python,
                   "interpreter of an environment with vLLM, whose kernels are measured too")
      ->type_name("PROGRAM");
  command->add_option("--worker", options->worker, "race these implementations for another process")
      ->type_name("IDS")
      ->group("");  // not in the help
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace opmux::cli
