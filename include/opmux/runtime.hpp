#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/constant.hpp>
#include <opmux/device.hpp>
#include <opmux/event.hpp>
#include <opmux/health.hpp>
#include <opmux/implementation.hpp>
#include <opmux/lockfile.hpp>
#include <opmux/operator.hpp>
#include <opmux/operator_info.hpp>
#include <opmux/plugin_options.hpp>
#include <opmux/policy.hpp>
#include <opmux/policy_check.hpp>
#include <opmux/policy_sources.hpp>
#include <opmux/quarantine.hpp>
#include <opmux/record.hpp>
#include <opmux/scope.hpp>
#include <opmux/selector.hpp>
#include <opmux/status.hpp>

namespace opmux {

struct ReplayOptions;
struct ReplayReport;

namespace runtime {
class Core;
}

/// How a runtime is made. Everything has a default.
struct Options {
  /// Receives events; nothing is told without one, unless OPMUX_LOG is set.
  EventSink sink = {};
  /// NAME=value pairs to use instead of the process's OPMUX_* variables; for tests and tools.
  std::optional<std::vector<std::pair<std::string, std::string>>> environment = {};
  /// Where else plugins are looked for, and what they must prove.
  PluginOptions plugins = {};
  /// Load the backends of the installation. The reference is always there.
  bool backends = true;
  /// Policy in code from the start, as set_policy would set it.
  Policy policy = {};
  /// Policy files, the platform's file, modes.
  SourceOptions sources = {};
  /// How many bytes packed copies of constants may take in all; what does not fit is not packed.
  uint64_t max_packed_bytes = UINT64_MAX;
  /// Threads that a call may run on, the caller's included, unless it says otherwise: CallOptions.
  /// 0 is OPMUX_NUM_THREADS, or else one for each processor up to eight. They start with the first
  /// call that has enough to do for two, and help one call at a time.
  int threads = 0;
  /// Folder for state, and the crash journal in it.
  StateOptions state = {};
  /// Files of calls that went wrong.
  RecordOptions record = {};
};

/// What was found where plugins are looked for, and what became of it.
struct PluginInfo {
  std::string path;  ///< without links; "built in" for what is linked in
  std::string name;
  bool loaded = false;
  std::string code, reason;  ///< why it was refused, or what of it was
  std::vector<std::string> backends, implementations;
  std::string found_in = {};  ///< "built in", "installation", "OPMUX_PLUGIN_PATH", "options"
  std::string version = {}, vendor = {};
  std::string digest = {};  ///< SHA-256 of its file
  std::string signer = {};  ///< name of the key that signed it, if that was asked for
  std::vector<std::string> warnings = {};  ///< what was found in its file and did not refuse it
};

/// Folded counters of one implementation.
struct CallStats {
  std::string implementation;
  uint64_t calls = 0;  ///< that ended ok
  uint64_t declined = 0, failed = 0, resource = 0, invalid_argument = 0, device_lost = 0;
  uint64_t stood_in = 0;      ///< calls that it took over from another one
  uint64_t packed_bytes = 0;  ///< of its copies of constants that live now
};

/// One effective setting and where it came from.
struct SettingInfo {
  std::string key, value, origin;
};

/// Keeps an implementation, or an answer to a point, registered; withdraws it when it goes.
/// Move-only.
class [[nodiscard]] Registration {
 public:
  OPMUX_API Registration() noexcept;
  OPMUX_API Registration(Registration&&) noexcept;
  OPMUX_API Registration& operator=(Registration&&) noexcept;
  /// Unpublishes without waiting: calls that are inside end as they would have.
  OPMUX_API ~Registration();

  /// Unpublishes and returns when no call is inside any more. Fails with `failed`,
  /// "withdraw.inside", from inside such a call.
  OPMUX_API Status withdraw();
  /// Keeps it registered for as long as the runtime lives.
  OPMUX_API void keep() noexcept;

  struct Held;
  explicit OPMUX_API Registration(std::unique_ptr<Held> held) noexcept;

 private:
  std::unique_ptr<Held> held_;
};

struct DefineOptions {
  /// Its kernels look at data, such as index ranges: `invalid_argument` from one is final.
  bool data_checked = false;
};

/// Operators, implementations and policy, and the engine that routes calls. Thread-safe. Objects
/// made by it must not outlive it.
class Runtime {
 public:
  /// Reads the environment, registers the standard operators with their reference, loads backends
  /// and plugins. A plugin that is refused changes nothing but plugins(); a wrong environment
  /// variable makes this fail.
  OPMUX_API static Result<Runtime> create(const Options& options = {});
  OPMUX_API Runtime(Runtime&&) noexcept;
  OPMUX_API Runtime& operator=(Runtime&&) noexcept;
  OPMUX_API ~Runtime();

  /// The operator of that name; `not_found` suggests the nearest.
  OPMUX_API Result<Operator> op(std::string_view name) const;
  /// A call by name: for scripts; a handle is faster.
  template <class... Args>
  Status call(std::string_view name, const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    dispatch::OperatorSlot* slot = find(name);
    if (slot == nullptr) [[unlikely]]
      return op(name).error();
    return Status(detail::call(*slot, packed));
  }

  /// Defines an operator. The same text again is the same operator; another text is refused.
  OPMUX_API Status define(std::string_view schema, const DefineOptions& options = {});
  /// Adds an implementation; refused with a reason if it does not fit its operator's schema.
  OPMUX_API Result<Registration> implement(const Implementation& implementation);

  /// Policy in code, for the whole runtime, until a scope says otherwise. Validated and tried on
  /// every operator first; a policy that would leave one without candidates is refused unless a
  /// rule says allow_none. A refused policy changes nothing.
  OPMUX_API Status set_policy(const Policy& policy);
  OPMUX_API Policy policy() const;
  OPMUX_API Status reset_policy();
  /// What would become of a text as this runtime's policy file: what is odd about it, and which
  /// decisions it would change. Changes nothing. Fails as putting it in force would, with every
  /// problem's place.
  OPMUX_API Result<PolicyCheck> check_policy(std::string_view text, std::string_view name,
                                             const PolicyCheckOptions& options = {}) const;

  /// Puts the text of a policy file in force, in the place of one that was read before: parsed,
  /// validated, shown to validators, tried on every operator, published. A text that is refused
  /// changes nothing; the answer names line and column. Calls that are inside end as they began.
  OPMUX_API Status load_policy(std::string_view text, std::string_view name = "policy");
  /// Goes back to the text before; once more, and the later one is in force again. A file that is
  /// followed is read again when it changes next.
  OPMUX_API Status rollback();
  /// What is in force of the policy texts, and what was refused.
  OPMUX_API PolicyState policy_state() const;
  /// May veto each text before it comes into force.
  OPMUX_API void add_validator(PolicyValidator validator);
  /// Told of each text that comes into force or is refused.
  OPMUX_API void on_policy(PolicyListener listener);
  /// Which choices would differ if the first text were replaced by the second, and because of what
  /// rule: where no condition holds, and where each condition holds alone. By policy and by what is
  /// available; capabilities depend on calls. Changes nothing.
  OPMUX_API Result<std::vector<ChoiceChange>> compare_policies(std::string_view from,
                                                               std::string_view from_name,
                                                               std::string_view to,
                                                               std::string_view to_name) const;
  /// From now on asks the program's own function when something is decided; see Selector. Fails
  /// with "selector.reads" for a fact that no operator has.
  OPMUX_API Status set_selector(const Selector& selector);
  /// The same for a function that looks at the accepted candidates alone, best first; it answers
  /// the position of one, or nothing.
  OPMUX_API Status
  set_selector(std::function<std::optional<size_t>(std::span<const Candidate>)> pick);
  OPMUX_API Status reset_selector();

  /// The choices that were made so far outside of scopes, by calls, plans and Operator::decide:
  /// what a lockfile has. A change of policy or of what is registered forgets what it concerns.
  OPMUX_API Lockfile lock() const;
  /// From now on nothing changes any more: new operators and implementations, policies, texts and
  /// switches of backends return `frozen`. Calls run what was chosen for their class so far; those
  /// of another class are decided as usual, and what runs for them, or in the place of a choice
  /// that may not run, is told as an event and in CallReport::fell_back. With strict they return
  /// `frozen` instead. Fallback after failures stays as it was, and scopes may still choose
  /// otherwise. In mode static the choices are those of its lockfile. Returns them. Cannot be
  /// undone.
  OPMUX_API Result<Lockfile> freeze();
  /// The same with the choices of a lockfile; `name` is told. Fails with `failed`, "lock.misfit"
  /// and all differences, and changes nothing, if it does not fit: another policy, another schema,
  /// an implementation that is not here, of another build, not available or denied.
  OPMUX_API Status freeze(const Lockfile& lock, std::string_view name = "opmux.lock");
  /// Whether freeze() would take that lockfile. Loads plugins that wait, and changes nothing else.
  OPMUX_API Status check_lock(const Lockfile& lock, std::string_view name = "opmux.lock") const;
  OPMUX_API bool frozen() const noexcept;

  /// Does what is due at `now`, on this thread: for programs that want no thread for it
  /// (SourceOptions::own_thread). `now` never goes back; its start is the program's own.
  OPMUX_API void tick(std::chrono::nanoseconds now);
  /// Ends the thread that follows files, waiting for a listener that it may be telling: for whoever
  /// holds a lock while a runtime is destroyed that listeners need.
  OPMUX_API void end_thread();

  /// Gives a tensor an owner, so that implementations may pack it once. Borrows the data. Fails
  /// with `invalid_argument` if there are none.
  OPMUX_API Result<Constant> constant(const TensorView& view);
  /// Bytes of all packed copies that live now.
  OPMUX_API uint64_t packed_bytes() const;

  /// A tag for call sites; the same word gives the same tag.
  OPMUX_API Tag tag(std::string_view word);
  OPMUX_API uint64_t generation() const noexcept;
  /// No decisions are made: OPMUX_DISABLE.
  OPMUX_API bool disabled() const noexcept;

  /// Switches a backend on or off, apart from whether it is available. `not_found` suggests.
  OPMUX_API Status enable_backend(std::string_view name, bool on);

  /// Runs calls on the threads of the OpenMP runtime that the process has (GNU's, which torch
  /// brings), on as many as it allows the calling thread when a plan is made, but not more than
  /// Options::threads if that is set. Two pools with a thread for each processor hinder each other:
  /// OpenMP's look for work for milliseconds before they sleep. A forked child, where OpenMP
  /// hangs, gets threads of the runtime's own. Cannot be undone. Fails with `unsupported`,
  /// "threads.openmp", and changes nothing if the process has none; none is ever loaded.
  OPMUX_API Status use_openmp();

  /// Every operator and implementation, in bytewise order. Loads plugins that wait and asks each
  /// backend whether it is available.
  OPMUX_API std::vector<OperatorInfo> list() const;
  /// Everything that was found where plugins are looked for. Loads what waits.
  OPMUX_API std::vector<PluginInfo> plugins() const;
  /// Loads the plugins that wait until a decision could use them, so that no call does.
  OPMUX_API void warm_up();
  OPMUX_API std::vector<CallStats> stats() const;
  OPMUX_API std::vector<SettingInfo> settings() const;
  /// Memory and streams of a backend's devices. Fails with `not_found` if there is no such backend
  /// or the CPU reads its memory, `unsupported` with the reason if it is not available.
  OPMUX_API Result<DeviceAccess> device_access(std::string_view backend) const;
  /// How everything is doing, in one verdict and in detail.
  OPMUX_API HealthReport health() const;
  /// Tells of every breaker that changes its state.
  OPMUX_API void on_breaker(BreakerListener listener);
  /// Opens, closes or isolates an implementation by hand, for all of its calls. In force for calls
  /// that start 100 ms later, and mostly at once. `not_found` suggests; `unsupported` for the
  /// reference.
  OPMUX_API Status force_breaker(std::string_view implementation, BreakerForce what);
  /// Devices that reported errors after the calls that caused them had returned.
  OPMUX_API std::vector<DeviceError> device_errors() const;
  /// Implementations that may not run because processes ended inside of them, and the suspects of
  /// other ends, as all processes of this user share them.
  OPMUX_API Quarantine quarantine() const;
  /// Lifts the quarantine of an implementation and the suspicion against it, or of all if
  /// `implementation` is empty; returns how often it was listed. Holds here at once, in other
  /// processes when they start next. Fails with `unavailable` if the store cannot be written.
  OPMUX_API Result<size_t> clear_quarantine(std::string_view implementation = {});
  OPMUX_API CrashJournalState crash_journal() const;
  /// Where calls that went wrong are recorded, and how many were.
  OPMUX_API RecordState recordings() const;
  /// Makes a recorded call again, and compares with the reference; include <opmux/replay.hpp>. The
  /// kernels run in this process, as in any call. Fails with "replay.file" for what is no such file
  /// and "replay.schema" if the operator is another one here; what cannot run is a verdict.
  OPMUX_API Result<ReplayReport> replay(const std::string& path, const ReplayOptions& options);
  /// Devices that were lost; nothing runs on them in this process any more.
  OPMUX_API std::vector<Device> lost_devices() const;

  runtime::Core& core() const noexcept { return *core_; }

 private:
  OPMUX_API explicit Runtime(std::unique_ptr<runtime::Core> core);
  /// Null if there is no such operator.
  OPMUX_API dispatch::OperatorSlot* find(std::string_view name) const noexcept;
  std::unique_ptr<runtime::Core> core_;
};

/// One runtime for scripts and first steps, made at first use with default options; libraries take
/// a Runtime& instead. Throws opmux::Error if it cannot be made.
OPMUX_API Runtime& default_runtime();
/// For tests: the next default_runtime() is a new one. Nothing may still use the old one.
OPMUX_API void reset_default_runtime();

}  // namespace opmux
