#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/detail/function.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/detail/time.hpp>
#include <opmux/device.hpp>
#include <opmux/explanation.hpp>
#include <opmux/health.hpp>
#include <opmux/implementation.hpp>
#include <opmux/operator.hpp>
#include <opmux/options.hpp>
#include <opmux/policy.hpp>
#include <opmux/replay.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>
#include <opmux/tuning.hpp>

namespace opmux {

namespace runtime {
class Core;
}

/// How a runtime is created. Everything has a default, so designated initialisers name only what
/// differs:
///
///   opmux::Result<opmux::Runtime> tuned = opmux::Runtime::create({
///       .sink = [](const opmux::Event& event) { std::cerr << event.text << "\n"; },
///       .policy = {.prefer = {"vendor:acme"}},
///       .threads = 4,
///   });
struct Options {
  /// Receives events; see EventSink. Without one, events go to standard error if OPMUX_LOG is set.
  EventSink sink = {};
  /// NAME=value pairs that replace the OPMUX_* variables of the process; for tests and tools.
  /// nullopt: the process environment. An empty list: no variables.
  std::optional<std::vector<std::pair<std::string, std::string>>> environment = {};
  /// Further folders with plugins, and the proof that plugins must provide.
  PluginOptions plugins = {};
  /// Load the backends of the installation (simd, onednn ...). The reference is always present.
  bool backends = true;
  /// Initial policy, as PolicyControl::set() would set it. An invalid one makes create() fail.
  Policy policy = {};
  /// Policy file, platform file, lockfile and mode.
  SourceOptions sources = {};
  /// Limit for all packed copies of constants together. A constant whose copy would exceed it is
  /// used unpacked.
  uint64_t max_packed_bytes = UINT64_MAX;
  /// Threads that a call may use, the calling thread included, unless CallOptions limits it. 0:
  /// OPMUX_NUM_THREADS, or one for each processor up to eight. They start with the first call that
  /// is large enough, and serve one call at a time; a concurrent call stays on its calling thread.
  int threads = 0;
  /// Folder for state on disk, crash journal, status file.
  StateOptions state = {};
  /// Recording of failed calls to files.
  RecordOptions record = {};
  /// Whether policy files that other users can write are refused.
  PolicyTrust policy_trust = PolicyTrust::warn;
};

/// Counters of one implementation, summed over all threads. Made by Runtime::stats(). No counter is
/// smaller than in an earlier result, except `packed_bytes`.
///
///   for (const opmux::CallStats& stats : runtime.stats()) {
///     std::cout << stats.implementation << " " << stats.calls << " calls\n";
///   }
struct CallStats {
  std::string implementation;
  uint64_t calls = 0;  ///< Calls that ended ok.
  /// Calls that ended with that outcome.
  uint64_t declined = 0, failed = 0, resource = 0, invalid_argument = 0, device_lost = 0;
  uint64_t stood_in = 0;      ///< Calls taken over as a fallback for another implementation.
  uint64_t packed_bytes = 0;  ///< Bytes of its packed copies that exist now.
  /// Calls that chose it first by a decision that could not be cached, so that the next such call
  /// decides again. They cost as much as first calls; the event "dispatch.decided_each_time" has
  /// the cause.
  uint64_t decided_each_time = 0;
};

/// One effective setting and its origin: {"strict", "true", "OPMUX_STRICT (environment)"}.
struct SettingInfo {
  std::string key, value, origin;
};

/// Keeps implementations, or an answer to a point, registered for as long as it lives.
///
///   opmux::Status defined = runtime.define("noop(out Tensor y[N])");
///   opmux::Registration own =
///       runtime
///           .implement({.id = "noop/demo.v1",
///                       .kind = opmux::Kind::default_,
///                       .run = [](opmux::CallFrame&) { return opmux::Outcome::ok; }})
///           .value();
///   opmux::Status gone = own.withdraw();  // waits; afterwards the lambda is not called again
///
/// Move-only. Must be destroyed before its runtime. One thread at a time may use it.
class [[nodiscard]] Registration {
 public:
  /// Holds nothing.
  OPMUX_API Registration() noexcept;
  OPMUX_API Registration(Registration&&) noexcept;
  OPMUX_API Registration& operator=(Registration&&) noexcept;
  /// Withdraws without waiting: new calls do not choose the implementations, running calls finish.
  /// Use withdraw() before code or state that kernels use goes away.
  OPMUX_API ~Registration();

  /// Withdraws, and returns when no call is inside the implementations any more. Fails with
  /// `failed`: "withdraw.inside" if it is called from inside such a call, "withdraw.barrier" if a
  /// sandbox refuses the system calls that tell whether a call is left. The implementations are
  /// withdrawn nevertheless, but what they use must stay. Does nothing if this object is empty.
  OPMUX_API Status withdraw();
  /// Divides this registration into one for each of its implementations, in the order in which they
  /// were registered, so that they can be withdrawn separately. This object then holds nothing.
  /// Calls do not notice.
  OPMUX_API std::vector<Registration> split();
  /// Keeps it registered until the runtime is destroyed; this object then holds nothing.
  OPMUX_API void keep() noexcept;

  /// For the library.
  struct Held;
  explicit OPMUX_API Registration(detail::Owned<Held> held) noexcept;

 private:
  detail::Owned<Held> held_;
};

/// Options of Runtime::define().
struct DefineOptions {
  /// Kernels of this operator check data, such as index ranges: `invalid_argument` from a kernel is
  /// returned to the caller instead of trying the next candidate.
  bool data_checked = false;
};

/// One of several operators that Runtime::define() or Runtime::implement() defines in one step.
struct Definition {
  std::string schema;  ///< As for Runtime::define(): "name(out Tensor y[N], Tensor x[N])".
  DefineOptions options = {};
};

/// The policy of a runtime: a Policy in code, and the text of a policy file. Made by
/// Runtime::policy().
///
///   opmux::PolicyControl policy = runtime.policy();
///   opmux::Status status = policy.load(
///       "opmux: 1\nrules:\n  - {op: softmax, prefer: [vendor]}\n", "inline.yaml");
///   if (!status.ok()) std::cerr << status.message() << "\n";
///   if (policy.state().previous_version != 0) status = policy.rollback();
///
/// Refers to the runtime, which must outlive it. Cheap to copy, safe from any thread.
class PolicyControl {
 public:
  /// Replaces the policy in code, which holds for the whole runtime until a scope overrides it. The
  /// policy is validated and tried on every operator first. A refused policy changes nothing. Calls
  /// that are running finish with their old choice.
  ///
  /// Fails with `invalid_argument`: a reason of validate(), or "policy.no_candidates" if an
  /// operator would be left without an implementation that can run on this machine and no rule says
  /// allow_none. Fails with `frozen` once frozen.
  OPMUX_API Status set(const Policy& policy);
  /// A copy of the policy in code; empty if none was set. Files and environment are not included.
  OPMUX_API Policy get() const;
  /// Removes the policy in code. Fails with `frozen` once frozen.
  OPMUX_API Status reset();

  /// Puts the text of a policy file (YAML or JSON) in force, replacing the previous text. It is
  /// parsed, validated, shown to validators, tried on every operator, and published. `name` appears
  /// in messages. A refused text changes nothing. Calls that are running finish with their old
  /// choice.
  ///
  /// Fails with `invalid_argument`, a reason "policy.*", and line and column; with the code of a
  /// validator that refuses; or with `frozen`.
  OPMUX_API Status load(std::string_view text, std::string_view name = "policy");
  /// Restores the previous policy text; a second call restores the later one again. A watched file
  /// is read again when it changes next. Fails with `not_found` ("policy.no_previous") if there is
  /// no previous text, or with `frozen`.
  OPMUX_API Status rollback();
  /// The policy text in force, and counters of loads and refusals.
  OPMUX_API PolicyState state() const;
  /// Adds a function that may refuse policy texts; see PolicyValidator. It is kept for the life of
  /// the runtime.
  OPMUX_API void add_validator(PolicyValidator validator);
  /// Adds a listener for policy texts that take effect or are refused; kept for the life of the
  /// runtime.
  OPMUX_API void on_change(PolicyListener listener);

  /// Checks a text as this runtime's policy file: warnings about rules, and the decisions that it
  /// would change; see PolicyCheck. Changes nothing, but loads waiting plugins. Fails as load()
  /// would, with the place of every problem.
  OPMUX_API Result<PolicyCheck> check(std::string_view text, std::string_view name,
                                      const PolicyCheckOptions& options = {}) const;
  /// The choices that would differ if the first text were replaced by the second, with the rule
  /// that causes each: for calls that match no condition, and for calls that match each condition
  /// alone. Considers policy and what can run on this machine, not capabilities, which depend on
  /// arguments. Changes nothing, but loads waiting plugins. Fails as load() would if a text would
  /// not come into force.
  OPMUX_API Result<std::vector<ChoiceChange>> compare(std::string_view from,
                                                      std::string_view from_name,
                                                      std::string_view to,
                                                      std::string_view to_name) const;

  /// For Runtime::policy().
  explicit PolicyControl(runtime::Core& core) noexcept : core_(&core) {}
  /// The old result of Runtime::policy().
  // NOLINTNEXTLINE(*-explicit-*)
  [[deprecated("use runtime.policy().get()")]] operator Policy() const { return get(); }

 private:
  runtime::Core* core_;
};

/// The choices of a runtime as a Lockfile, and freezing, which ends all changes. Made by
/// Runtime::lockfile().
///
///   opmux::Lockfile lock = runtime.lockfile().current();
///   opmux::Status fits = runtime.lockfile().check(lock);
///   if (fits.ok()) fits = runtime.lockfile().freeze(lock);
///   std::cout << (runtime.lockfile().frozen() ? "frozen\n" : "not frozen\n");
///
/// Refers to the runtime, which must outlive it. Cheap to copy, safe from any thread.
class LockfileControl {
 public:
  /// The choices made so far outside of scopes, by calls, plans and Operator::decide(), as a
  /// Lockfile. A change of policy or registration removes the choices that it concerns.
  OPMUX_API Lockfile current() const;
  /// Ends all changes: afterwards new operators and implementations, policies, policy texts and
  /// switches of backends return `frozen`. Cannot be undone. Waiting plugins are loaded first.
  ///
  /// Calls run the choice made for their class before freezing. A call of another class, or whose
  /// choice cannot run, is decided as usual and reported as a deviation (event "lock.deviation",
  /// CallReport::fell_back); with a strict policy it returns `frozen` instead. Fallback after
  /// failures works as before, and scopes may still choose otherwise.
  ///
  /// Returns the frozen choices; in mode static those of the lockfile, and then it may fail as
  /// freeze(lock) does. A second call returns them again.
  OPMUX_API Result<Lockfile> freeze();
  /// The same with the choices of a lockfile; `name` appears in messages. Fails with `failed`,
  /// "lock.misfit", and all differences, and changes nothing, if the lockfile does not fit: another
  /// policy, another schema, or an implementation that is missing, of another build, unavailable or
  /// denied. Fails with `frozen` if the runtime is frozen already.
  OPMUX_API Status freeze(const Lockfile& lock, std::string_view name = "opmux.lock");
  /// Whether freeze(lock) would succeed; fails as it does. Loads waiting plugins and changes
  /// nothing else.
  OPMUX_API Status check(const Lockfile& lock, std::string_view name = "opmux.lock") const;
  /// Whether the runtime is frozen.
  OPMUX_API bool frozen() const noexcept;

  /// For Runtime::lockfile().
  explicit LockfileControl(runtime::Core& core) noexcept : core_(&core) {}

 private:
  runtime::Core* core_;
};

/// Operators, implementations, policy and the engine that routes calls. A program usually creates
/// one and passes it by reference.
///
///   opmux::Options options;
///   options.policy.deny = {"vendor:acme"};
///   opmux::Result<opmux::Runtime> created = opmux::Runtime::create(options);
///   if (!created) {
///     std::cerr << created.error().to_string() << "\n";
///   } else {
///     opmux::Operator rms_norm = created->op("rms_norm").value();
///     float x[4] = {1, 2, 3, 4}, y[4];
///     opmux::Status status = rms_norm(opmux::TensorView(y, opmux::f32, {1, 4}),
///                                     opmux::TensorView(x, opmux::f32, {1, 4}));
///   }
///
/// Thread-safe: every function may be called from any thread, several at a time. Calls of operators
/// take no lock. fork() is safe while other threads call; the child may call at once. Several
/// runtimes in a process are independent.
///
/// Objects made by a runtime must be destroyed before it. Move-only; do not move it while other
/// threads use it.
///
/// Functions about one subject are in a part, which a function of that name returns: policy(),
/// lockfile(), tuning(), plugins(), health(), replay(). A part refers to the runtime, also after a
/// move.
class Runtime {
 public:
  /// Reads OPMUX_* variables, registers the standard operators with their reference, finds backends
  /// and plugins, and puts policy in force. A plugin that is refused does not fail it:
  /// PluginControl::list() has the reason.
  ///
  /// Fails with `invalid_argument` for a wrong variable ("environment.*"), an unreadable or invalid
  /// policy file without a last known good version ("config.file", "policy.*"), or a mode that does
  /// not fit the files ("mode.files"); with `failed`, "lock.misfit", if a lockfile does not fit.
  OPMUX_API static Result<Runtime> create(const Options& options = {});
  OPMUX_API Runtime(Runtime&&) noexcept;
  OPMUX_API Runtime& operator=(Runtime&&) noexcept;
  /// Stops the threads of the runtime. No call may be running and no object made by it may be left.
  OPMUX_API ~Runtime();

  /// The handle of an operator. Fails with `not_found` and suggests the nearest name. Look it up
  /// once: the handle stays valid for the life of the runtime, also when implementations change.
  OPMUX_API Result<Operator> op(std::string_view name) const;
  /// Calls an operator by name, with the arguments of Operator::operator(). A lookup on each call:
  /// use a handle where speed matters. Fails with `not_found` if there is no such operator.
  template <class... Args>
  Status call(std::string_view name, const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    dispatch::OperatorSlot* slot = find(name);
    if (slot == nullptr) [[unlikely]]
      return op(name).error();
    return Status(detail::call(*slot, packed));
  }

  /// Defines an operator by its schema, "name(out Tensor y[N], Tensor x[N])"; docs/concepts.md has
  /// the language. Defining the same text again succeeds. Fails with `invalid_argument`
  /// ("schema.*", with the column), `already_exists` ("registry.schema_differs") if the name has
  /// another schema, or `frozen`.
  OPMUX_API Status define(std::string_view schema, const DefineOptions& options = {});
  /// Registers an implementation; see Implementation for an example. It is a candidate for calls
  /// that start after this returns. Fails with `not_found` ("registry.unknown_operator"),
  /// `already_exists` if the id or a different backend of that name exists, `invalid_argument` if
  /// capabilities or signature do not fit the schema, `resource` beyond 256 implementations of an
  /// operator, `frozen`.
  OPMUX_API Result<Registration> implement(const Implementation& implementation);

  /// Defines several operators in one step: all of them, or none if one is refused. Fails as
  /// define() of a single operator does, with the first operator that is refused; the message
  /// begins with its name.
  OPMUX_API Status define(std::span<const Definition> operators);
  /// Registers several implementations in one step, after defining `operators`, which they may
  /// implement: all of them, or none if one is refused. They are candidates for calls that start
  /// after this returns. The runtime publishes them once, so use this to register thousands.
  ///
  ///   std::vector<opmux::Definition> operators;
  ///   std::vector<opmux::Implementation> kernels;
  ///   for (const std::string name : {"first_layer", "second_layer"}) {
  ///     operators.push_back({name + "(out Tensor y[N], Tensor x[N])"});
  ///     kernels.push_back({.id = name + "/demo.v1",
  ///                        .kind = opmux::Kind::default_,
  ///                        .run = [](opmux::CallFrame&) { return opmux::Outcome::ok; }});
  ///   }
  ///   opmux::Result<opmux::Registration> all = runtime.implement(kernels, operators);
  ///   if (!all) std::cerr << all.error().message() << "\n";
  ///
  /// The Registration keeps all implementations and withdraws them in one step. Its split() makes
  /// one for each. Operators stay defined. The structs are copied, as by implement() of a
  /// single implementation. Thread-safe like every function of Runtime; other registrations wait
  /// meanwhile, calls do not. Fails as define() and implement() of single ones do, with the first
  /// item that is refused; the message begins with the operator's name or the implementation's id.
  OPMUX_API Result<Registration> implement(std::span<const Implementation> implementations,
                                           std::span<const Definition> operators = {});

  /// The policy in code, and policy texts: setting, loading, checking, going back.
  PolicyControl policy() const noexcept { return PolicyControl(*core_); }
  /// The choices of this runtime as a lockfile, and freezing.
  LockfileControl lockfile() const noexcept { return LockfileControl(*core_); }
  /// Bundles of measured speeds, and sampling of calls that are to be measured.
  TuningControl tuning() const noexcept { return TuningControl(*core_); }
  /// Plugins that were found, and the backends that they brought.
  PluginControl plugins() const noexcept { return PluginControl(*core_); }
  /// Health verdict, circuit breakers, device errors, crash journal and quarantine.
  HealthControl health() const noexcept { return HealthControl(*core_); }
  /// Calls that were recorded because they failed, and running them again.
  ReplayControl replay() const noexcept { return ReplayControl(*core_); }

  /// Installs a function that may replace choices; see Selector. Replaces an earlier one. Fails
  /// with `invalid_argument` ("selector.function" without a function, "selector.reads" for a fact
  /// that no operator has), or with `frozen`.
  OPMUX_API Status set_selector(const Selector& selector);
  /// The same for a function that looks only at the accepted candidates, best first, and returns
  /// the position of one, or nullopt.
  OPMUX_API Status
  set_selector(detail::Function<std::optional<size_t>(std::span<const Candidate>)> pick);
  /// Removes the selector. Fails with `frozen` once frozen.
  OPMUX_API Status reset_selector();

  /// Runs maintenance that is due at `now` on the calling thread: watched files, breakers, expiring
  /// rules, the shadow check, the status file. For programs without a maintenance thread
  /// (SourceOptions::own_thread). `now` is a std::chrono::duration of whole nanoseconds or
  /// coarser units. It must not decrease; its origin is arbitrary.
  ///
  ///   runtime.tick(std::chrono::steady_clock::now().time_since_epoch());
  template <detail::ExactDuration Duration>
  void tick(const Duration& now) {
    tick_ns(detail::nanoseconds_of(now));
  }
  /// Stops the maintenance thread and waits for a listener that it is calling. Call it before
  /// destroying the runtime under a lock that listeners take, so that they cannot deadlock. Files
  /// are not watched afterwards.
  OPMUX_API void end_thread();

  /// Makes a Constant of a tensor, so that implementations may pack it once. The data are borrowed.
  /// Fails with `invalid_argument` ("constant.absent") if the view has no data.
  OPMUX_API Result<Constant> constant(const TensorView& view);
  /// Bytes of all packed copies that exist now.
  OPMUX_API uint64_t packed_bytes() const;

  /// The Tag of a word, for CallOptions::tag. The same word gives the same tag in every runtime.
  OPMUX_API Tag tag(std::string_view word);
  /// Number of the current snapshot of registry and policy; it grows with each change.
  OPMUX_API uint64_t generation() const noexcept;
  /// Whether OPMUX_DISABLE is set: operators run their reference, and policy is not consulted.
  OPMUX_API bool disabled() const noexcept;

  /// States the place of this process among those that share a model, for the names `rank` and
  /// `tp_size` (number of processes that share its tensors) in conditions and verifiers. Effective
  /// for calls that start after this returns. Wins over OPMUX_RANK and OPMUX_TP_SIZE; nullopt: not
  /// stated, and conditions about it are not true. Fails with `invalid_argument` ("ambient.rank").
  OPMUX_API Status set_rank(std::optional<int> rank, std::optional<int> tp_size);

  /// Runs calls on the threads of the OpenMP runtime that the process has loaded (GNU libgomp,
  /// which torch brings), because two pools with a thread for each processor slow each other down.
  /// A call uses as many threads as OpenMP allows the calling thread when a plan is made, but not
  /// more than Options::threads if that is set. A forked child, where OpenMP would hang, uses
  /// threads of the runtime. Cannot be undone. Fails with `unsupported` ("threads.openmp"), and
  /// changes nothing, if no such OpenMP runtime is loaded; opmux never loads one.
  OPMUX_API Status use_openmp();

  /// Every operator and implementation, sorted bytewise. Loads waiting plugins and asks each
  /// backend whether it is available, so the first call may be slow.
  OPMUX_API std::vector<OperatorInfo> list() const;
  /// Counters of every implementation, sorted by id. Cheap enough to poll.
  OPMUX_API std::vector<CallStats> stats() const;
  /// Every effective setting and where it came from, as `opmux config show` prints them.
  OPMUX_API std::vector<SettingInfo> settings() const;

  /// For the library and its bindings.
  runtime::Core& core() const noexcept { return *core_; }

  // Old names of functions that are in the parts now. The next version removes them.

  [[deprecated("use runtime.policy().set()")]] OPMUX_API Status set_policy(const Policy& next);
  [[deprecated("use runtime.policy().reset()")]] OPMUX_API Status reset_policy();
  [[deprecated("use runtime.policy().check()")]] OPMUX_API Result<PolicyCheck> check_policy(
      std::string_view text, std::string_view name, const PolicyCheckOptions& options = {}) const;
  [[deprecated("use runtime.policy().load()")]] OPMUX_API Status
  load_policy(std::string_view text, std::string_view name = "policy");
  [[deprecated("use runtime.policy().rollback()")]] OPMUX_API Status rollback();
  [[deprecated("use runtime.policy().state()")]] OPMUX_API PolicyState policy_state() const;
  [[deprecated("use runtime.policy().add_validator()")]] OPMUX_API void add_validator(
      PolicyValidator validator);
  [[deprecated("use runtime.policy().on_change()")]] OPMUX_API void on_policy(
      PolicyListener listener);
  [[deprecated("use runtime.policy().compare()")]] OPMUX_API Result<std::vector<ChoiceChange>>
  compare_policies(std::string_view from, std::string_view from_name, std::string_view to,
                   std::string_view to_name) const;
  [[deprecated("use runtime.lockfile().current()")]] OPMUX_API Lockfile lock() const;
  [[deprecated("use runtime.lockfile().freeze()")]] OPMUX_API Result<Lockfile> freeze();
  [[deprecated("use runtime.lockfile().freeze()")]] OPMUX_API Status
  freeze(const Lockfile& lock, std::string_view name = "opmux.lock");
  [[deprecated("use runtime.lockfile().check()")]] OPMUX_API Status
  check_lock(const Lockfile& lock, std::string_view name = "opmux.lock") const;
  [[deprecated("use runtime.lockfile().frozen()")]] OPMUX_API bool frozen() const noexcept;
  [[deprecated("use runtime.plugins().warm_up()")]] OPMUX_API void warm_up();
  [[deprecated("use runtime.plugins().enable_backend()")]] OPMUX_API Status
  enable_backend(std::string_view name, bool on);
  [[deprecated("use runtime.plugins().device_access()")]] OPMUX_API Result<DeviceAccess>
  device_access(std::string_view backend) const;
  [[deprecated("use runtime.health().on_breaker()")]] OPMUX_API void on_breaker(
      BreakerListener listener);
  [[deprecated("use runtime.health().force_breaker()")]] OPMUX_API Status
  force_breaker(std::string_view implementation, BreakerForce what);
  [[deprecated("use runtime.health().device_errors()")]] OPMUX_API std::vector<DeviceError>
  device_errors() const;
  [[deprecated("use runtime.health().lost_devices()")]] OPMUX_API std::vector<Device> lost_devices()
      const;
  [[deprecated("use runtime.health().quarantine()")]] OPMUX_API Quarantine quarantine() const;
  [[deprecated("use runtime.health().clear_quarantine()")]] OPMUX_API Result<size_t>
  clear_quarantine(std::string_view implementation = {});
  [[deprecated("use runtime.health().crash_journal()")]] OPMUX_API CrashJournalState
  crash_journal() const;
  [[deprecated("use runtime.replay().recordings()")]] OPMUX_API RecordState recordings() const;
  [[deprecated("use runtime.replay().run()")]] OPMUX_API Result<ReplayReport> replay(
      const std::string& path, const ReplayOptions& options);

 private:
  OPMUX_API explicit Runtime(detail::Owned<runtime::Core> core);
  OPMUX_API void tick_ns(int64_t now);
  /// Null if there is no such operator.
  OPMUX_API dispatch::OperatorSlot* find(std::string_view name) const noexcept;
  detail::Owned<runtime::Core> core_;
};

/// The optional features of the loaded library, separated by spaces: "policy_files" (it reads
/// policy files), "signatures" (it checks digests and signatures of plugins). Static lifetime.
///
///   if (opmux::features().find("policy_files") == std::string_view::npos) return 1;
OPMUX_API std::string_view features() noexcept;

/// A runtime for scripts and first steps, created at first use with default options. Libraries
/// should take a Runtime& instead. Throws opmux::Error if it cannot be created. Thread-safe; it
/// lives until the process ends.
///
///   opmux::Operator softmax = opmux::default_runtime().op("softmax").value();
OPMUX_API Runtime& default_runtime();
/// For tests: destroys the default runtime; the next default_runtime() creates a new one. No object
/// of the old one may be left.
OPMUX_API void reset_default_runtime();

/// Reports of a runtime as JSON, one line each, for endpoints and tools.
///
///   std::cout << opmux::to_json(runtime.health().report()) << "\n";
///   std::cout << opmux::to_json(runtime.list()) << "\n";
///
/// docs/schemas has a JSON Schema for each form. Keys are only ever added, so readers should ignore
/// unknown ones. Functions do not fail and keep no reference to their argument; text that is not
/// valid UTF-8 is written as U+FFFD.

/// explain.json: a decision with all candidates.
OPMUX_API std::string to_json(const Explanation& explanation);
/// list.json: operators and implementations.
OPMUX_API std::string to_json(const std::vector<OperatorInfo>& operators);
/// plugins.json: plugins found, loaded and refused.
OPMUX_API std::string to_json(const std::vector<PluginInfo>& plugins);
/// tuning.json: bundles of measured speeds.
OPMUX_API std::string to_json(const std::vector<TuningBundle>& bundles);
/// config.json: effective settings with their origins.
OPMUX_API std::string to_json(const std::vector<SettingInfo>& settings);
/// quarantine.json: quarantined implementations and suspects.
OPMUX_API std::string to_json(const Quarantine& quarantine);
/// State and counters of the crash journal.
OPMUX_API std::string to_json(const CrashJournalState& state);
/// The policy text in force and counters of loads and refusals.
OPMUX_API std::string to_json(const PolicyState& state);
/// check.json: the result of PolicyControl::check(), or the Status with which it failed.
OPMUX_API std::string to_json(const PolicyCheck& check);
OPMUX_API std::string to_json(const Status& refusal);
/// health.json: verdict, backends, devices, breakers, shadow check.
OPMUX_API std::string to_json(const HealthReport& report);
/// Counters of recorded calls.
OPMUX_API std::string to_json(const RecordState& state);
/// replay.json: verdicts on a replayed call.
OPMUX_API std::string to_json(const ReplayReport& report);

}  // namespace opmux
