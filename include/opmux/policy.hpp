#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/implementation.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

namespace detail {
class EnteredCall;
}

/// How a condition compares a number. multiple_of: divisible without remainder.
enum class Compare : uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  multiple_of
};

/// A predicate on a call, for Rule::when: comparisons joined by &&, || and !.
///
///   opmux::Condition long_bf16 =
///       opmux::Condition::dim("T", opmux::Compare::greater, 8192) &&
///       opmux::Condition::dtype("q", opmux::bf16);
///   opmux::Condition same = opmux::Condition::parse("T > 8192 && dtype(q) == \"bf16\"").value();
///   std::cout << long_bf16.to_string() << "\n";
///
/// Names are those of an operator's schema. A rule whose condition names something that an operator
/// does not have does not apply to that operator.
///
/// The value of a comparison is undefined if it asks about an absent argument or divides by zero;
/// `&&` and `||` ignore an undefined side if the other side decides. A rule applies if its
/// condition is true.
///
/// Immutable, cheap to copy, safe to share between threads.
class OPMUX_API Condition {
 public:
  /// Kinds of nodes; each is made by the function of the same name, `text` by parse().
  enum class Kind : uint8_t {
    dim,
    rows,
    dtype,
    rank,
    device,
    present,
    contiguous,
    aligned,
    layout,
    scalar,
    ambient,
    tag,
    text,
    all_of,
    any_of,
    negation,
    real,
  };
  struct Node;

  /// Compares a named dimension with a number. Functions do not fail: names are checked when the
  /// policy is set.
  static Condition dim(std::string name, Compare compare, int64_t value);
  /// Compares the product of the leading dimensions `...`.
  static Condition rows(Compare compare, int64_t value);
  /// Whether a tensor argument has this element type.
  static Condition dtype(std::string arg, DType dtype);
  /// Compares the number of dimensions of a tensor argument.
  static Condition rank(std::string arg, Compare compare, int64_t value);
  /// Whether a tensor argument is on a device of this type, OPMUX_DEVICE_*.
  static Condition device(std::string arg, int32_t type);
  /// Whether an optional argument is given.
  static Condition present(std::string arg);
  /// Whether a tensor argument is row-major without gaps.
  static Condition contiguous(std::string arg);
  /// Whether the first element is aligned to `bytes`, a power of two up to 4096.
  static Condition aligned(std::string arg, int64_t bytes);
  /// Whether the dimensions have this order by falling stride, as digits: "0213".
  static Condition layout(std::string arg, std::string order);
  /// Compares an int, float, bool (0/1) or enum (position) argument.
  static Condition scalar(std::string arg, Compare compare, int64_t value);
  /// Compares a float or int argument with a float, as IEEE 754 does: of the comparisons with a NaN
  /// only `not_equal` is true. `value` must be finite; `multiple_of` is not for floats.
  static Condition real(std::string arg, Compare compare, double value);
  template <std::floating_point T>
  static Condition scalar(std::string arg, Compare compare, T value) {
    return real(std::move(arg), compare, static_cast<double>(value));
  }
  /// Whether an ambient fact is on: "grad", "capturing", "deterministic", "training", "inference",
  /// "autocast"; or "instance", whether the call goes through an Instance.
  static Condition ambient(std::string name);
  /// Whether the call has this tag: Runtime::tag("layer.3").number.
  static Condition tag(uint32_t tag);

  /// Parses a condition as policy files write it, in a subset of CEL (docs/policy_conditions.md):
  /// `dtype(q) == "bf16" && T > 8192 && D in [64, 128]`. Fails with `invalid_argument`,
  /// "policy.when", and the column. Names and types are checked later, where an operator is known.
  static Result<Condition> parse(std::string_view text);

  /// Conjunction, disjunction, negation. Both sides are always built; nothing is evaluated here.
  Condition operator&&(const Condition& other) const;
  Condition operator||(const Condition& other) const;
  Condition operator!() const;

  /// The root of the tree, for tools that inspect conditions. Valid as long as this object.
  const Node& node() const { return *node_; }
  /// Canonical text. Equal texts mean equal conditions; equal conditions may have different texts.
  std::string to_string() const;

 private:
  explicit Condition(detail::Shared<const Node> node) : node_(std::move(node)) {}
  detail::Shared<const Node> node_;
};

/// One node of a condition.
struct Condition::Node {
  Kind kind = Kind::dim;
  std::string name = {};  ///< Dimension, argument or ambient fact.
  Compare compare = Compare::equal;
  int64_t value = 0;      ///< Right side of the comparison.
  std::string text = {};  ///< Stride order of `layout`, or the source text of parse().
  std::vector<Condition> operands = {};  ///< Children of all_of, any_of, negation.
  double real = 0;                       ///< Right side of the comparison of `real`.
};

/// Changes the score of matching implementations: score = (priority + adds) * multipliers, over all
/// boosts that apply.
struct Boost {
  std::string impl;     ///< Token, usually a glob such as "rms_norm/acme.*".
  double add = 0;       ///< Between -1000 and 1000.
  double multiply = 1;  ///< Between 0.01 and 100.
};

/// Settings of circuit breakers. A field that is not set is taken from the next weaker policy, and
/// finally from the defaults in parentheses.
///
///   opmux::Policy policy;
///   policy.breaker = {.consecutive_failures = 3, .open_for_ms = 10'000};
///   opmux::Status status = runtime.policy().set(policy);
struct BreakerOptions {
  std::optional<int> consecutive_failures = {};  ///< Opens after this many in a row (5); 1-1000.
  /// Opens too if this share of the window failed (0.5); 0.01-1.
  std::optional<double> failure_rate = {};
  std::optional<int> window = {};     ///< Number of recent calls considered (100); 1-1024.
  std::optional<int> min_calls = {};  ///< Calls in the window before the rate counts (20); 1-1024.
  /// Duration of the first opening (30000); the n-th in a row lasts n times as long.
  std::optional<int64_t> open_for_ms = {};
  std::optional<int64_t> open_at_most_ms = {};  ///< Upper limit of that duration (300000).
  std::optional<int> permits = {};              ///< Concurrent probes while half open (3); 1-100.
  std::optional<int> successes = {};            ///< Successful probes that close it (2); 1-100.
  /// A call that takes longer counts as slow. Setting it makes opmux time calls: each one that
  /// takes 8 us or more, one of the shorter ones every 8 us, at least one in 128. Not set: calls
  /// are not timed.
  std::optional<int64_t> slow_call_us = {};
  /// Opens if this share of the window was slow (0.5); 0.01-1.
  std::optional<double> slow_rate = {};
  /// A call that takes more than this many times as long as the reference does for the same
  /// arguments counts as slow; 0.01-1000. Needs ShadowOptions::every: only the calls that the
  /// shadow check samples are compared. Not set: none.
  std::optional<double> slow_factor = {};

  friend bool operator==(const BreakerOptions&, const BreakerOptions&) = default;
};

/// Reaction of the shadow check to a wrong result. open: the breaker of that class of calls opens
/// at once. report: only the event `shadow.mismatch`.
enum class OnMismatch : uint8_t { open, report };

/// Settings of the shadow check, which recomputes a sample of calls with the reference in the
/// background and compares the results.
///
///   opmux::Policy policy;
///   policy.shadow = {.every = 1024, .on_mismatch = opmux::OnMismatch::report};
///   opmux::Status status = runtime.policy().set(policy);
struct ShadowOptions {
  /// Samples one call in `every` for each implementation; more often while the implementation is
  /// unproven and after a mismatch. 0 or not set: the check is off.
  std::optional<int> every = {};
  std::optional<OnMismatch> on_mismatch = {};  ///< Not set: open.
  std::optional<double> share = {};  ///< Share of one thread that it may use; not set: 0.01.
  /// Upper limit for waiting copies; not set: 16. Calls that need more than a sixteenth of it, and
  /// more than 1 MB, are not compared, because the caller waits while its tensors are copied.
  std::optional<int> memory_mb = {};

  friend bool operator==(const ShadowOptions&, const ShadowOptions&) = default;
};

/// Whether measured speeds ("tuning rows") replace the order by score. bundle: rows of the bundles
/// that the runtime found, where they hold for this machine and the loaded builds; see
/// Runtime::tuning(). off: only the score counts. online: as bundle, and the runtime measures calls
/// that the shadow check has copied, on its background thread, and proposes what it finds:
/// TuningControl::proposals(). online_apply: later calls use it as well. A scope cannot start the
/// measuring.
///
///   opmux::Status status = runtime.policy().set({.tuning = opmux::Tuning::off});
enum class Tuning : uint8_t { off, bundle, online, online_apply };

/// "off", "bundle", "online" or "online_apply"; static lifetime.
OPMUX_API std::string_view name_of(Tuning tuning) noexcept;

/// One rule of a policy. It applies to operators that match `op`, in calls for which `when` is
/// true.
///
/// Lists hold tokens: `default`, `vendor`, `reference`, `vendor:NAME`, `impl:ID`, or a glob with
/// `/` such as `rms_norm/acme.*`. The constraints (`deny`, `require`) of all matching rules hold.
/// Of the ordering fields (`prefer`, `order`, `strict`, `allow`, `transforms`) the first matching
/// rule that sets one wins.
///
///   opmux::Rule rule;
///   rule.name = "broken-driver";
///   rule.op = "softmax";
///   rule.when = opmux::Condition::dim("H", opmux::Compare::greater, 8192);
///   rule.deny = {"*/opencl.*"};
///   rule.reason = "wrong sums on driver 3.1";
///   rule.expires = "2127-02-01";
///   opmux::Policy policy;
///   policy.rules = {rule};
///   opmux::Status status = runtime.policy().set(policy);
struct Rule {
  std::string name = {};  ///< For messages; may be empty.
  std::string op = "*";   ///< An operator, or a glob over operators.
  std::string impl = {};  ///< Token: implementations that `breaker` is for; empty = all.
  std::optional<Condition> when = {};  ///< Not set: always.
  /// require: only these may run. prefer: these first, then the rest. order: these in this order
  /// and no others. deny: never, not even as a fallback. allow: if not empty, only these, the
  /// reference included.
  std::vector<std::string> require = {}, prefer = {}, order = {}, deny = {}, allow = {};
  std::vector<Boost> boost = {};  ///< Boosts of all matching rules combine.
  /// Conversions that opmux may apply to tensors that an implementation does not accept as they
  /// are: `contiguous` (copy to row-major), `widen` (f16 and bf16 to f32), or `none` alone to
  /// cancel those of a weaker policy.
  std::vector<std::string> transforms = {};
  /// True: return the first outcome that is not ok instead of falling back.
  std::optional<bool> strict = {};
  /// Breaker settings for `impl`; only in rules without `when`.
  std::optional<BreakerOptions> breaker = {};
  int rank = 50;  ///< From 0 to 1000, higher first, then the order of the list.
  /// For people: why the rule exists and which team owns it; explanations repeat them. `expires` is
  /// a date, "2127-02-01" (UTC, end of day), after which only `deny` and `require` stay in force.
  std::string reason = {}, owner = {}, expires = {};
  /// Set by the runtime when `expires` has passed; programs leave it false.
  bool expired = false;
  /// Permits the policy to leave an operator without an implementation that can run here.
  bool allow_none = false;
  std::string where = {};  ///< "policy.yaml:12", for messages; set by the file reader.
};

/// Preferences and constraints for selection, from a program, a scope, the environment or a file.
/// Everything is optional; an empty policy changes nothing.
///
///   opmux::Policy policy;
///   policy.prefer = {"vendor:acme", "default"};
///   policy.deny = {"*/opencl.*"};
///   policy.strict = true;
///   opmux::Status status = runtime.policy().set(policy);
///   if (!status.ok()) std::cerr << status.to_string() << "\n";
///
/// Lists hold the tokens described at Rule. Between sources, strongest first (scope, policy in
/// code, policy file, environment, platform file), each ordering field comes from the strongest
/// source that sets it, while `deny` and `require` of all sources hold. A plain value: copy it
/// freely.
struct OPMUX_API Policy {
  /// As in Rule, for every operator and every call.
  std::vector<std::string> prefer = {}, require = {}, deny = {}, allow = {};
  /// As in Rule.
  std::optional<bool> strict = {};
  /// Vendor names; they affect only implementations of kind vendor.
  std::vector<std::string> allow_vendors = {}, deny_vendors = {};
  std::vector<std::string> transforms = {};  ///< As in Rule.
  /// Exclusive order for single operators: {"rms_norm", {"vendor:acme", "reference"}}.
  std::map<std::string, std::vector<std::string>> per_op = {};
  /// Rules with conditions; see Rule.
  std::vector<Rule> rules = {};
  /// Settings for all implementations that no rule gives others.
  BreakerOptions breaker = {};
  ShadowOptions shadow = {};
  bool strict_names = false;  ///< Refuses tokens outside of `deny` that match nothing here.
  /// As in Rule: permits the policy to leave operators without an implementation that can run here.
  bool allow_none = false;
  /// Whether measured speeds count. Not set: as the next weaker policy says, and finally `bundle`.
  std::optional<Tuning> tuning = {};
  /// The policy around this one, set by combine(): it supplies ordering fields that this one leaves
  /// empty, and its constraints hold too.
  detail::Shared<const Policy> outer = {};

  /// Whether neither this policy nor an outer one affects selection. Breaker and shadow settings do
  /// not count.
  bool empty() const;
};

/// `inner` nested in `outer`, as a scope within a scope: ordering fields of `inner` win,
/// constraints add up. An equal policy that occurs twice counts once. Copies both; does not fail.
OPMUX_API Policy combine(const Policy& outer, const Policy& inner);

/// Checks everything that can be checked without operators: tokens, ids, globs, ranges, limits.
/// PolicyControl::set() and PolicyScope do it too. Fails with `invalid_argument` and one of
/// "policy.token", "policy.op", "policy.when", "policy.boost", "policy.rank", "policy.expires",
/// "policy.vendor", "policy.transforms", "policy.too_deep".
OPMUX_API Status validate(const Policy& policy);

class Runtime;
namespace runtime {
class Core;
}

/// A policy for this thread and this block, on top of the scopes around it. The innermost scope
/// wins for `prefer`, `strict`, `allow` and the other ordering fields; `require` and `deny` of all
/// scopes hold. Other threads are not affected.
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   float x[4] = {}, y[4];
///   {
///     opmux::PolicyScope only_reference{runtime, {.require = {"reference"}}};
///     opmux::Status status = softmax(opmux::TensorView(y, opmux::f32, {1, 4}),
///                                    opmux::TensorView(x, opmux::f32, {1, 4}));
///   }
///
/// Scopes must end in the reverse order of their construction, on the same thread, before the
/// runtime is destroyed. The first call in a scope with a new policy compiles it; entering an equal
/// policy again is cheap. Scopes do not follow work to other threads: see Scope.
class [[nodiscard]] PolicyScope {
 public:
  /// Enters the scope. A policy that is not valid is not entered, and status() says why. The policy
  /// is copied. A scope is not tried on every operator: one that leaves no candidate makes calls
  /// fail with `no_candidate`.
  OPMUX_API PolicyScope(Runtime& runtime, const Policy& policy);
  /// For the library.
  OPMUX_API PolicyScope(runtime::Core& core, const Policy& policy);
  /// Leaves the scope.
  OPMUX_API ~PolicyScope();
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

  /// Ok; `invalid_argument` for a policy that is not valid; `resource` ("policy.too_many_scopes")
  /// if 256 different scopes are alive, or "resource.memory".
  const Status& status() const { return status_; }

 private:
  struct State;
  Status enter(runtime::Core& core, const Policy& policy);
  detail::Owned<State> state_;
  Status status_;
};

/// A policy compiled for entering, for programs that carry scopes between threads themselves:
/// schedulers of coroutines, context variables of Python. Make it once, enter it wherever the work
/// runs:
///
///   opmux::Scope quiet = opmux::Scope::make(runtime, {.deny = {"vendor"}}).value();
///   {
///     opmux::EnteredScope inside(quiet);  // on any thread, any number of times
///     std::cout << (opmux::current_scope_number() == quiet.number()) << "\n";
///   }
///
/// Copies are cheap and share one policy. A default-constructed Scope is empty: entering it leaves
/// all scopes. Safe to enter from several threads at a time; the runtime must outlive it.
class Scope {
 public:
  OPMUX_API Scope() noexcept;
  OPMUX_API Scope(const Scope&);
  OPMUX_API Scope(Scope&&) noexcept;
  OPMUX_API Scope& operator=(Scope) noexcept;
  OPMUX_API ~Scope();

  /// A scope nested in `around`, combined as PolicyScope nests. Fails as PolicyScope::status()
  /// does. An `around` of another runtime is ignored.
  OPMUX_API static Result<Scope> make(Runtime& runtime, const Policy& policy,
                                      const Scope& around = {});

  /// Equal policies have equal numbers for as long as the process lives; 0 for an empty scope.
  uint32_t number() const noexcept { return static_cast<uint32_t>(context_ >> 32); }

  struct Held;

 private:
  friend class PolicyScope;
  friend class EnteredScope;
  friend class detail::EnteredCall;
  detail::Shared<const Held> held_;
  uint64_t context_ = 0;
};

/// Makes `scope` the scope of this thread for this block, replacing the one that was active, and
/// restores that one at the end. Costs a few nanoseconds. `scope` must outlive this object, which
/// must be destroyed on the same thread.
class [[nodiscard]] EnteredScope {
 public:
  /// Throws std::bad_alloc if there is no memory for the thread's part of the library, which its
  /// first scope or call makes.
  OPMUX_API explicit EnteredScope(const Scope& scope);
  OPMUX_API ~EnteredScope();
  EnteredScope(const EnteredScope&) = delete;
  EnteredScope& operator=(const EnteredScope&) = delete;

 private:
  uint64_t before_;
  const Scope* outer_;
  size_t outer_depth_;
};

/// Scope::number() of the scope that this thread is in; 0 outside of scopes.
OPMUX_API uint32_t current_scope_number() noexcept;

/// Facts about the surroundings of calls on this thread, which decisions and rules can depend on.
/// `deterministic` and `capturing` restrict candidates to implementations that promise it; `grad`
/// excludes implementations for inference only; the others are read by rules and verifiers. Calls
/// from Python add torch's state to these facts.
struct Ambient {
  bool grad = false, capturing = false, deterministic = false, training = false;
  bool inference = false, autocast = false;
};

/// Sets the ambient facts of this thread for this block, in every runtime, and restores the
/// previous ones at the end. All facts are replaced, not merged.
///
///   opmux::AmbientScope reproducible({.deterministic = true});
class [[nodiscard]] AmbientScope {
 public:
  /// Throws std::bad_alloc as EnteredScope does.
  OPMUX_API explicit AmbientScope(const Ambient& ambient);
  OPMUX_API ~AmbientScope();
  AmbientScope(const AmbientScope&) = delete;
  AmbientScope& operator=(const AmbientScope&) = delete;

 private:
  uint64_t before_;
};

/// The policy text in force, and counters of loads and refusals. Made by PolicyControl::state().
///
///   const opmux::PolicyState state = runtime.policy().state();
///   if (!state.last_refusal.ok()) std::cerr << state.last_refusal.message() << "\n";
struct PolicyState {
  std::string name;    ///< "policy.yaml"; empty if no text is in force.
  std::string digest;  ///< SHA-256 of the text; empty if the library was built without digests.
  std::string origin;  ///< "file", "last known good", "load_policy", "rollback".
  /// Incremented for each text that takes effect; rollback restores the old number.
  uint64_t version = 0;
  uint64_t generation = 0;          ///< Number of the snapshot with which it took effect.
  uint64_t rules = 0, expired = 0;  ///< Number of rules, and of those that have expired.
  uint64_t unmatched = 0;  ///< Rules that name only implementations absent from this process.
  /// The first sixteen of them: `"other-hosts" (policy.yaml:12)`.
  std::vector<std::string> unmatched_rules;
  uint64_t previous_version = 0;  ///< Version that PolicyControl::rollback() restores; 0: none.
  uint64_t loaded = 0, refused = 0, rolled_back = 0, lapsed = 0;  ///< Counts since the start.
  Status last_refusal;                                            ///< Ok if no text was refused.
};

/// A policy text that took effect or was refused; argument of PolicyListener.
struct PolicyChange {
  std::string name, digest, origin;
  uint64_t version = 0, generation = 0;  ///< Of the text in force now.
  Status status = {};  ///< Ok: in force; else why it was refused, and nothing changed.
};

/// Reviews a policy text before it takes effect: any Status that is not ok refuses it. Called after
/// parsing and before the trial on every operator, from the thread that loads the text. An
/// exception refuses it with `failed`, "policy.validator". It must not change the policy of the
/// runtime.
///
///   runtime.policy().add_validator([](const opmux::Policy& next) -> opmux::Status {
///     for (const opmux::Rule& rule : next.rules) {
///       if (rule.owner.empty()) {
///         return {opmux::Code::invalid_argument, "acme.owner", rule.where + ": owner is missing"};
///       }
///     }
///     return {};
///   });
using PolicyValidator = detail::Function<Status(const Policy& next)>;
/// Called after each change or refusal, from the thread that loaded the text (often the maintenance
/// thread), never while opmux holds a lock. Must not throw.
using PolicyListener = detail::Function<void(const PolicyChange&)>;

/// A warning about a policy text that would apply, but perhaps not as its author intended.
struct PolicyFinding {
  std::string code;   ///< "policy.unmatched", "policy.shadowed", "policy.contradiction" ...
  std::string where;  ///< "policy.yaml:12".
  std::string rule;   ///< Name of the rule; may be empty.
  std::string text;   ///< One sentence for people.
};

/// The first choice for an operator now, and under the checked policy.
struct DecisionChange {
  std::string op;             ///< Operator.
  std::string when;           ///< Condition of a rule; empty: calls for which no condition is true.
  std::string before, after;  ///< Ids; empty: no candidate is left.
  std::string by;             ///< Rule that causes it: `"broken-driver" (policy.yaml:12)`.
};

/// Result of PolicyControl::check(), which is what `opmux check` prints.
///
///   const std::string_view text = "opmux: 1\nrules:\n  - {op: softmax, deny: [vendor]}\n";
///   opmux::Result<opmux::PolicyCheck> check = runtime.policy().check(text, "policy.yaml");
///   if (!check) std::cerr << check.error().message() << "\n";
///   if (check) {
///     for (const opmux::PolicyFinding& finding : check->findings) {
///       std::cout << finding.where << ": " << finding.text << "\n";
///     }
///   }
struct PolicyCheck {
  size_t rules = 0;                          ///< Number of rules in the text.
  std::vector<PolicyFinding> findings = {};  ///< In the order of the rules.
  std::vector<DecisionChange> changes = {};  ///< By operator.
};

/// Options of PolicyControl::check().
struct PolicyCheckOptions {
  /// As `names: strict` in the file, and tokens in `deny` must match something too.
  bool strict_names = false;
  /// Implementations of the target machine, as Runtime::list() returned them there; empty: this
  /// process.
  std::vector<OperatorInfo> machine = {};
};

/// The implementation that runs for one class of calls of one operator.
struct LockedChoice {
  std::string op;
  std::string when;  ///< Facts that define the class: "dtype(x) == bf16 && H % 16 == 0", "always".
  std::string implementation;  ///< Id: "rms_norm/simd.avx512".
  std::string build_id;     ///< Of the file that contains the implementation; empty if it has none.
  std::string schema_hash;  ///< Of the operator: 16 hexadecimal digits.
  friend auto operator<=>(const LockedChoice&, const LockedChoice&) = default;
};

/// Choices of a runtime, written down so that another process makes the same ones.
/// LockfileControl::current() makes one; LockfileControl::freeze(lock), or mode static, applies it.
///
///   opmux::Lockfile lock = runtime.lockfile().current();
///   if (lock.write("opmux.lock").ok()) {
///     opmux::Lockfile read = opmux::Lockfile::read("opmux.lock").value();
///     std::cout << read.choices.size() << " choices\n";
///     opmux::Status fits = runtime.lockfile().check(read);
///     if (!fits.ok()) std::cerr << fits.message() << "\n";
///   }
///
/// The text has one line for each choice, sorted, and ends with the SHA-256 of the lines before, so
/// it can be compared and reviewed. A plain value.
struct OPMUX_API Lockfile {
  /// Identifies the meaning of the policies under which choices were made.
  std::string policy_hash = {};
  std::vector<LockedChoice> choices = {};

  /// The text of the file, digest included. Equal choices give equal texts.
  std::string to_string() const;
  /// SHA-256 of the sorted text; empty if the library was built without digests.
  std::string digest() const;

  /// Parses a text; `name` appears in messages. Fails with `invalid_argument`, "lock.text", and the
  /// line if the text is not a lockfile, or was edited after it was written.
  static Result<Lockfile> parse(std::string_view text, std::string_view name = "opmux.lock");
  /// Reads and parses a file. Fails as parse() does, and with "config.file" if it cannot be read.
  static Result<Lockfile> read(const std::string& path);
  /// Replaces the file atomically: readers see the old or the new content. Fails with `failed`,
  /// "lock.write", and the error of the system.
  Status write(const std::string& path) const;
};

/// A difference between two lockfiles or two policies, for one class of calls.
struct ChoiceChange {
  std::string op, when;  ///< Operator, and condition that defines the class.
  std::string from, to;  ///< Implementations; empty: no candidate, or not known.
  std::string because;   ///< Cause: "rule \"try-acme\" (new.yaml:12)".
  friend bool operator==(const ChoiceChange&, const ChoiceChange&) = default;
};

/// Choices that two lockfiles make differently, including different builds and schemas, and choices
/// that only one of them has. Sorted by operator and class; empty if they are equivalent.
OPMUX_API std::vector<ChoiceChange> differences(const Lockfile& from, const Lockfile& to);

}  // namespace opmux
