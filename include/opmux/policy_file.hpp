#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/detail/time.hpp>
#include <opmux/implementation.hpp>
#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// Where policy comes from besides code, and how a runtime follows it. An empty text means that the
/// environment variable named in its comment decides.
///
///   opmux::Options options;
///   options.sources.mode = "hot_reload";
///   options.sources.config = "/etc/opmux/policy.yaml";
///   opmux::Result<opmux::Runtime> service = opmux::Runtime::create(options);
///   if (!service) std::cerr << service.error().to_string() << "\n";
struct SourceOptions {
  /// "static" (choices come from a lockfile, which must exist and fit), "dynamic" (no file),
  /// "config" (files are read once), "hot_reload" (files are watched), "auto" (static if there is a
  /// lockfile, else hot_reload if there is a policy file, else dynamic). Empty: OPMUX_MODE, or
  /// auto.
  std::string mode = {};
  /// A policy file, or a folder whose *.yaml and *.json files form one policy. Empty: OPMUX_CONFIG.
  /// A relative path is resolved once, when the runtime is created.
  std::string config = {};
  /// A policy file of the machine, or the name of an installed one. Empty: OPMUX_PLATFORM.
  std::string platform = {};
  /// The lockfile of mode static. Empty: OPMUX_LOCKFILE, or opmux.lock beside `config`.
  std::string lockfile = {};
  /// False: mode static does not freeze until Runtime::freeze() is called, so that the program can
  /// register implementations first.
  bool freeze_at_start = true;
  /// Store the last policy that took effect, and start with it if the files are broken. False:
  /// broken files make Runtime::create() fail.
  bool last_known_good = true;
  /// False: the runtime starts no maintenance thread, and the program calls Runtime::tick(). This
  /// affects watched files, breakers that become half open, expiring rules, the shadow check and
  /// the status file.
  bool own_thread = true;
  /// Poll files every 100 ms even where the kernel reports changes. For network file systems.
  bool look_at_files = false;
  /// Clock for the expiry of rules and quarantines: a function that returns
  /// std::chrono::sys_seconds. Empty: the system clock. For tests.
  detail::UtcClock utc = {};
};

/// The policy text in force, and counters of loads and refusals. Made by Runtime::policy_state().
///
///   const opmux::PolicyState state = runtime.policy_state();
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
  uint64_t previous_version = 0;  ///< Version that rollback() would restore; 0: none.
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
///   runtime.add_validator([](const opmux::Policy& next) -> opmux::Status {
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

/// Result of Runtime::check_policy(), which is what `opmux check` prints.
///
///   const std::string_view text = "opmux: 1\nrules:\n  - {op: softmax, deny: [vendor]}\n";
///   opmux::Result<opmux::PolicyCheck> check = runtime.check_policy(text, "policy.yaml");
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

/// Options of Runtime::check_policy().
struct PolicyCheckOptions {
  bool strict_names = false;  ///< As `names: strict` in the file.
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

/// Choices of a runtime, written down so that another process makes the same ones. Runtime::lock()
/// makes one; Runtime::freeze(lock), or mode static, applies it.
///
///   opmux::Lockfile lock = runtime.lock();
///   if (lock.write("opmux.lock").ok()) {
///     opmux::Lockfile read = opmux::Lockfile::read("opmux.lock").value();
///     std::cout << read.choices.size() << " choices\n";
///     opmux::Status fits = runtime.check_lock(read);
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
