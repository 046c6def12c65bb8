#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/explanation.hpp>
#include <opmux/health.hpp>
#include <opmux/status.hpp>

/// Status files: they show from outside which implementations a running process uses. A process
/// that sets OPMUX_STATE_PAGE=1 or StateOptions::state_page keeps one small file for each runtime,
/// updated at most four times a second. `opmux list --pid` uses these functions.
///
///   opmux::Result<opmux::ProcessState> state = opmux::process_state(4711);
///   if (!state) std::cerr << state.error().message() << "\n";
///   if (state) {
///     for (const opmux::RuntimeState& of : state->runtimes) {
///       std::cout << of.policy_name << " " << of.calls("rms_norm/simd.avx512") << "\n";
///     }
///   }
///
/// No function needs a runtime. A status file belongs to the user of its process (0600) and
/// contains names, counters and texts of rules, but no tensor data. All structs are plain values.
namespace opmux {

/// A policy source that is in force.
struct PolicySourceState {
  std::string source;  ///< "code", "file", "environment", "platform", "built-in".
  std::string name;    ///< "policy.yaml", "set_policy".
  uint64_t rules = 0;  ///< Number of rules.
};

/// A backend, as far as its state is known without asking it.
struct BackendPageState {
  std::string name;
  /// "healthy", "degraded", "unhealthy", "fatal", "unavailable", "off", "lost by a fork", "not
  /// loaded".
  std::string state;
  std::string reason;
};

/// Counters of one implementation, and why it cannot run if so.
struct ImplementationPageState {
  std::string id, kind;
  int64_t priority = 0;
  uint64_t calls = 0;     ///< Calls that ended ok.
  uint64_t stood_in = 0;  ///< Of these, calls taken over as a fallback for another implementation.
  uint64_t declined = 0, failed = 0, resource = 0;  ///< Calls that ended with that outcome.
  std::string code;    ///< Reason that refuses every call: "policy.denied"; empty if it can run.
  std::string reason;  ///< The same as a sentence.
  /// Calls that chose it first by a decision that could not be cached; see CallStats.
  uint64_t decided_each_time = 0;
  /// Attributes that it reported about the constant that it packed last: "packed_bytes 4096,
  /// format panels".
  std::string instance = {};
};

/// One operator with its implementations.
struct OperatorPageState {
  std::string name;
  std::vector<ImplementationPageState> implementations;  ///< Sorted by id.
  /// Calls of all implementations that ended ok.
  uint64_t calls() const {
    uint64_t all = 0;
    for (const ImplementationPageState& each : implementations) all += each.calls;
    return all;
  }
};

/// The decision for one class of calls outside of scopes.
struct ChoicePageState {
  std::string op;
  std::string when;  ///< Facts that define the class: "dtype(x) == bf16", "always".
  std::vector<std::string> accepted;  ///< Ids: the first runs, the others are its fallbacks.
  std::string rests;        ///< The first choice if no breaker were open; empty if none is.
  std::string note;         ///< A preference that was not met, a deviation from a lockfile.
  uint64_t generation = 0;  ///< Snapshot in which it was decided.
};

/// Calls of one operator with the same types, sizes and threads, estimated from sampled calls on
/// the CPU. `opmux tune run --from-pid` measures the implementations of these calls.
struct CellPageState {
  std::string op;
  std::string tensors;  ///< The tensors that calls pass, and their types: "y=bf16 x=bf16".
  std::string dims;     ///< Sizes by name: "H=4096 rows=16".
  int64_t threads = 0;  ///< That a call may use.
  uint64_t calls = 0;
  uint64_t time_ns = 0;   ///< Of all these calls together.
  uint64_t error_ns = 0;  ///< At most this much of it belongs to other cells.
};

/// A class of calls whose breaker is not closed; fields as in BreakerInfo.
struct BreakerPageState {
  std::string implementation, what, state, why;
  uint64_t openings = 0;  ///< Consecutive openings.
};

/// One runtime of a process.
struct RuntimeState {
  uint64_t number = 0;   ///< Counts the runtimes of the process that keep a status file, from 1.
  int64_t since = 0;     ///< When it was created; seconds since 1970.
  int64_t written = 0;   ///< When the file was written; milliseconds since 1970.
  uint64_t updates = 0;  ///< How often it was written.
  std::string version;   ///< Of opmux.
  std::string mode;      ///< "dynamic", "config", "hot_reload", "static".
  bool frozen = false, disabled = false;
  uint64_t generation = 0;  ///< Number of the snapshot in force.

  std::string policy_name;    ///< Of the policy text in force; empty if there is none.
  std::string policy_digest;  ///< SHA-256 of that text.
  std::string policy_origin;  ///< "file", "last known good", "load_policy", "rollback".
  uint64_t policy_version = 0, policy_rules = 0, policies_refused = 0;  ///< As in PolicyState.
  std::string last_refusal;  ///< Why the last refused text was refused; empty if none was.
  std::vector<PolicySourceState> sources;  ///< Strongest first.

  std::string health;  ///< "healthy", "degraded", "fatal".
  std::vector<BackendPageState> backends;
  std::vector<OperatorPageState> operators;
  std::vector<ChoicePageState> choices;   ///< By operator, then class.
  std::vector<CellPageState> cells;       ///< At most 256, those that take the most time first.
  std::vector<TuningProposal> proposals;  ///< As in TuningControl::proposals(); ratios to 0.001.
  std::vector<BreakerPageState> breakers;
  std::vector<OperatorWithoutCandidates> without_candidates;  ///< As in HealthReport.
  uint64_t left_out = 0;  ///< Choices and implementations for which the file has no room.

  /// Calls of one implementation that ended ok; 0 if the id is unknown.
  OPMUX_API uint64_t calls(std::string_view implementation) const;
};

/// A process with all its runtimes.
struct ProcessState {
  int64_t pid = 0;
  std::string name;                    ///< Command name, as the kernel reports it.
  int64_t started = 0;                 ///< Seconds since 1970.
  bool alive = false;                  ///< The process still runs and updates the file.
  bool elsewhere = false;              ///< In another pid namespace: `pid` is valid only there.
  std::vector<RuntimeState> runtimes;  ///< By number.
};

/// The folder with status files: `state_dir`/run or, if that is empty, the folder given by
/// OPMUX_STATE_DIR and the defaults described at StateOptions::folder.
OPMUX_API std::string state_page_folder(const std::string& state_dir = {});

/// Reads one file, also of a process that has ended or of another machine. Fails with
/// "state_page.read" (`not_found` or `failed`) if it cannot be read, "state_page.damaged" if the
/// contents are corrupt, `unsupported` ("state_page.version") if another version of opmux wrote it.
OPMUX_API Result<ProcessState> open_state_page(const std::string& path);

/// A living process and its runtimes. Root also finds the processes of other users, in this folder
/// and in the default folders of the user. Fails with `not_found`: "state_page.process" if the
/// process has ended, "state_page.none" if it keeps no status file in this folder.
OPMUX_API Result<ProcessState> process_state(int64_t pid, const std::string& state_dir = {});

/// Every living process of this user that keeps a status file, sorted by pid. Files that cannot be
/// read are skipped; the list is empty if there is no folder.
OPMUX_API std::vector<ProcessState> process_states(const std::string& state_dir = {});

class Runtime;
/// Writes the state of a runtime to a file once, for example for a bug report, or to measure
/// its calls with `opmux tune run --page`. Replaces the file; nothing updates or removes it later.
/// For a file that follows the process, see StateOptions::state_page. Fails with "state_page.file".
OPMUX_API Status write_state_page(const Runtime& runtime, const std::string& path);

/// JSON as docs/schemas/process_state.json describes it; a list is {"processes": [...]}.
OPMUX_API std::string to_json(const ProcessState& state);
OPMUX_API std::string to_json(const std::vector<ProcessState>& states);
/// The same as docs/schemas/proposals.json describes it.
OPMUX_API std::string to_json(const std::vector<TuningProposal>& proposals);

}  // namespace opmux
