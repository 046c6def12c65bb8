#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/device.hpp>
#include <opmux/status.hpp>

/// Health of backends, devices and implementations.
///
/// Each implementation has a circuit breaker for each class of its calls (device, element type,
/// each dimension up to the next power of two). Calls that end with `failed` count against it.
/// While the breaker is open, the next candidate runs instead; after a while a few probe calls
/// decide whether it closes again. BreakerOptions has the settings.
///
///   const opmux::HealthReport health = runtime.health().report();
///   std::cout << opmux::name_of(health.verdict) << "\n";
///   for (const opmux::BreakerInfo& breaker : health.breakers) {
///     std::cout << breaker.implementation << " " << opmux::name_of(breaker.state) << "\n";
///   }
namespace opmux {

namespace runtime {
class Core;
}

/// healthy: nothing is wrong. degraded: it serves, but not as well as it could. unhealthy: no part
/// of it can be used at the moment. fatal: it cannot be used again in this process.
enum class Health : uint8_t { healthy, degraded, unhealthy, fatal };
/// "healthy", "degraded", "unhealthy", "fatal"; static lifetime.
OPMUX_API std::string_view name_of(Health health) noexcept;

/// closed: calls run. open: calls run another candidate until the breaker half-opens. half_open: a
/// limited number of concurrent probe calls run. isolated: open until it is closed by hand.
enum class BreakerState : uint8_t { closed, open, half_open, isolated };
/// "closed", "open", "half open", "isolated"; static lifetime.
OPMUX_API std::string_view name_of(BreakerState state) noexcept;

/// Argument of HealthControl::force_breaker(). open: as if the failure limit were reached; probes
/// follow. close: closes and clears all counters. isolate: opens until `close`.
enum class BreakerForce : uint8_t { open, close, isolate };

/// State of the breaker of one class of calls. Only classes with recent failures are listed.
struct BreakerInfo {
  std::string implementation, op;
  std::string what;  ///< Class of calls: "f32 H<=4096 rows<=32 on cpu:0", or "all calls".
  BreakerState state = BreakerState::closed;
  uint32_t failures_in_a_row = 0;  ///< Consecutive failures so far.
  uint32_t openings = 0;           ///< Consecutive openings; determines how long it stays open.
  uint64_t next_probe_ms = 0;      ///< While open: time until calls probe it.
  std::string why;                 ///< Cause of the state; empty while closed.
  uint64_t change = 0;  ///< BreakerEvent::change of the last change of state; 0 before the first.
};

/// A breaker that changed its state; argument of BreakerListener.
struct BreakerEvent {
  std::string implementation, op, what;  ///< `what` is the class of calls, as in BreakerInfo.
  BreakerState from = BreakerState::closed, to = BreakerState::closed;
  uint32_t openings = 0;
  uint64_t open_for_ms = 0;  ///< Duration, if it opened.
  std::string why;  ///< Cause in words: number or rate of failures, a probe, a request by hand.
  /// Number of the change, unique in the runtime. Those of one implementation grow. Listeners are
  /// called by several threads, so an event may arrive after a later one; BreakerInfo::change tells
  /// whether the state it reports still lasts.
  uint64_t change = 0;
};
/// Called on the thread that caused the change, or on the maintenance thread, never while opmux
/// holds a lock. Must not throw.
///
///   runtime.health().on_breaker([](const opmux::BreakerEvent& event) {
///     if (event.to == opmux::BreakerState::open) std::cerr << event.implementation << " opened\n";
///   });
using BreakerListener = detail::Function<void(const BreakerEvent&)>;

/// One backend. unhealthy: the breakers of all its implementations are open. degraded: some are
/// open or half open. fatal: its device is lost.
struct BackendHealth {
  std::string name;
  Health health = Health::healthy;
  std::string reason;  ///< Sentence for people; empty if healthy.
};
/// A device that reported errors (degraded) or is lost (fatal).
struct DeviceState {
  Device device;
  Health health = Health::healthy;
  std::string reason;
};

/// A wrong element that the shadow check found.
struct ShadowMismatch {
  std::string what;              ///< Class of calls: "f32 H<=4096 rows<=32 on cpu:0".
  std::string element;           ///< The first wrong one: "y[3,5]".
  double got = 0, expected = 0;  ///< Values of the implementation and of the reference.
  double tolerance = 0;          ///< Distance from `expected` that is allowed.
  std::string text;              ///< All of it in a sentence.
};

/// Results of the shadow check for one implementation.
struct ShadowInfo {
  std::string implementation;
  uint64_t compared = 0;    ///< Calls that the reference recomputed.
  uint64_t mismatches = 0;  ///< Compared calls with a wrong element.
  uint64_t not_finite = 0;  ///< Calls that wrote NaN or infinity although no input had any.
  /// Sampled calls that could not be compared, by reason.
  struct Skipped {
    std::string reason;  ///< "memory", "device", "stream", "nested" ...
    uint64_t calls = 0;
  };
  std::vector<Skipped> skipped;        ///< By reason.
  std::optional<ShadowMismatch> last;  ///< Most recent mismatch.
};

/// State of the shadow check of a runtime; ShadowOptions turns it on.
struct ShadowReport {
  uint32_t every = 0;    ///< One call in `every` is compared; 0: the check is off.
  uint64_t waiting = 0;  ///< Copied calls that wait for comparison.
  std::vector<ShadowInfo> implementations;
};

/// An operator whose calls fail with `no_candidate`, because none of its implementations can run on
/// this machine or policies exclude those that can.
struct OperatorWithoutCandidates {
  std::string op;
  std::string when;    ///< Condition of the calls that fail; empty: those that match no condition.
  std::string reason;  ///< Why each implementation is not used.
  bool allowed = false;  ///< A policy says allow_none.
};

/// Health of a whole runtime, for the health endpoint of a service. Made by
/// HealthControl::report(); to_json() of <opmux/runtime.hpp> serialises it. A plain value.
struct HealthReport {
  /// fatal: a device is lost, and this process should be replaced. degraded: a backend or device is
  /// not healthy, and other implementations serve its calls, or an operator has no candidate. Never
  /// `unhealthy`: other operators can be called.
  Health verdict = Health::healthy;
  std::vector<std::string> reasons;     ///< One sentence for each cause of the verdict.
  std::vector<BackendHealth> backends;  ///< All backends, by name.
  std::vector<DeviceState> devices;     ///< Devices that reported errors or are lost.
  std::vector<BreakerInfo> breakers;    ///< Classes of calls with recent failures.
  ShadowReport shadow;                  ///< Results of the shadow check.
  /// By name. An operator that a policy allows to have none does not degrade the verdict. Backends
  /// that were not probed yet count as available.
  std::vector<OperatorWithoutCandidates> without_candidates = {};
  /// Policy texts that were refused since the start, also at a reload, and why the last one was.
  /// They do not degrade the verdict, because the policy before stays in force.
  uint64_t refused_policies = 0;
  Status last_refusal = {};
};

/// Crash journal and quarantine: an implementation inside which a process crashed is not used by
/// the next process.
///
/// While a journal is on, the process records on disk which implementation each thread runs. The
/// next process that starts with the same folder reads the journals of processes that ended badly,
/// and quarantines the implementation that caused the crash: explain() then says
/// "health.quarantined", and other candidates run. A crash while a plugin is opened or initialised
/// quarantines its file, and a crash in `is_available` the backend. The reference is never
/// quarantined.
///
///   opmux::Options options;
///   options.state.crash_journal = opmux::CrashJournal::with_handler;
///   opmux::Runtime service = opmux::Runtime::create(options).value();
///   for (const opmux::QuarantineEntry& entry : service.health().quarantine().entries) {
///     std::cerr << entry.implementation << " is quarantined: " << entry.how << "\n";
///   }

/// Contents of the crash journal. A call costs the same in each case.
enum class CrashJournal : uint8_t {
  off,           ///< Nothing; existing quarantines still apply.
  on,            ///< Running implementations: after a kill they are suspects.
  with_handler,  ///< Also the faulting one: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT.
};

/// "off", "on", "with_handler".
constexpr std::string_view name_of(CrashJournal journal) noexcept {
  return journal == CrashJournal::off ? "off" : journal == CrashJournal::on ? "on" : "with_handler";
}

/// Folder and contents of the state that a runtime keeps on disk.
struct StateOptions {
  /// Replaces OPMUX_STATE_DIR; `run` and `store` are created below it, for this user alone (0700).
  /// Empty, and without that variable: $XDG_RUNTIME_DIR/opmux or /dev/shm/opmux-UID for `run`, and
  /// $XDG_STATE_HOME/opmux or ~/.local/state/opmux for `store`.
  std::string folder = {};
  /// If off, OPMUX_CRASH_JOURNAL decides. A journal that cannot be written is logged once
  /// ("journal.off") and the runtime works without it.
  CrashJournal crash_journal = CrashJournal::off;
  /// Keep a status file in `run`, from which other processes read what this runtime does:
  /// <opmux/state_page.hpp>. OPMUX_STATE_PAGE turns it on too. A file that cannot be written is
  /// logged once.
  bool state_page = false;
};

/// An implementation that may not run because a process crashed inside it; or "plugin:FILE", which
/// is not opened, or "backend:NAME", whose implementations are not used.
struct QuarantineEntry {
  std::string implementation, build;  ///< Id, and build: another build is not affected.
  std::string how;  ///< "SIGSEGV", "exit", or "suspect": the only one in common to two kills.
  int64_t since = 0, expires = 0;  ///< Seconds since 1970; it expires after 7 days.
  bool here = false;               ///< This runtime has that implementation in that build.
  /// The function that the process crashed in: "constructor", "query" and "init" of a plugin,
  /// "is_available" of a backend, "verify", "create", "load", "plan" and "run" of an
  /// implementation.
  std::string phase = "run";
  /// `here`, in a plugin that is not loaded until a call needs it.
  bool deferred = false;
};

/// A process that was killed, and the implementations that were running. Suspects stay usable.
struct SuspectedEnd {
  int64_t found = 0;     ///< When its journal was read; seconds since 1970.
  uint32_t process = 0;  ///< Pid.
  std::vector<std::string> implementations;
};

/// Contents of the store, which all processes of this user share. Made by
/// HealthControl::quarantine().
struct Quarantine {
  std::vector<QuarantineEntry> entries;
  std::vector<SuspectedEnd> suspected;
};

/// State of a runtime's crash journal; for monitoring. Made by HealthControl::crash_journal().
struct CrashJournalState {
  bool on = false, handler = false;  ///< Whether it is written, and with signal handlers.
  std::string path;                  ///< Journal file of this process; empty if there is none.
  std::string problem;               ///< Why it is off although it was requested.
  uint64_t ends = 0;                 ///< Journals of ended processes that this runtime evaluated.
  uint64_t damaged = 0;              ///< Journals and entries that could not be read.
  uint64_t other_version = 0;        ///< Journals written by other versions of opmux.
  uint64_t unnoted = 0;              ///< Failed attempts to write names of implementations.
  uint64_t threads_left_out = 0;     ///< Threads without a slot in the journal.
};

/// Health of a runtime: the report, circuit breakers, devices, crash journal and quarantine.
/// Made by Runtime::health().
///
///   opmux::HealthControl health = runtime.health();
///   if (health.report().verdict == opmux::Health::fatal) return 1;
///   opmux::Status status =
///       health.force_breaker("rms_norm/simd.avx512", opmux::BreakerForce::isolate);
///   if (!status.ok()) std::cerr << status.message() << "\n";
///
/// Refers to the runtime, which must outlive it. Cheap to copy, safe from any thread.
class HealthControl {
 public:
  /// Health in one verdict and in detail; see HealthReport.
  OPMUX_API HealthReport report() const;

  /// Adds a listener for breakers that change their state; kept for the life of the runtime.
  OPMUX_API void on_breaker(BreakerListener listener);
  /// Opens, closes or isolates the breaker of an implementation, for all of its calls. Takes effect
  /// for calls that start 100 ms later, usually at once. Fails with `not_found` and suggests the
  /// nearest id, with `unsupported` ("health.reference") for a reference, which always stays
  /// closed, and with `resource` if there are too many breakers.
  OPMUX_API Status force_breaker(std::string_view implementation, BreakerForce what);

  /// Errors that devices reported after the calls that caused them had returned.
  OPMUX_API std::vector<DeviceError> device_errors() const;
  /// Devices on which nothing runs any more in this process, because a kernel returned
  /// `device_lost`.
  OPMUX_API std::vector<Device> lost_devices() const;

  /// Implementations that may not run because processes crashed inside them, and suspects of other
  /// crashes. The list is shared by all processes of this user.
  OPMUX_API Quarantine quarantine() const;
  /// Lifts the quarantine of an implementation and clears suspicions against it; an empty id means
  /// all. Returns the number of entries removed, 0 if there were none. Takes effect in this runtime
  /// at once, in other processes when they start next. Fails with `unavailable` ("quarantine.file")
  /// if the store cannot be written.
  OPMUX_API Result<size_t> clear_quarantine(std::string_view implementation = {});
  /// State and counters of the crash journal.
  OPMUX_API CrashJournalState crash_journal() const;

  /// For Runtime::health().
  explicit HealthControl(runtime::Core& core) noexcept : core_(&core) {}
  /// The old result of Runtime::health().
  // NOLINTNEXTLINE(*-explicit-*)
  [[deprecated("use runtime.health().report()")]] operator HealthReport() const { return report(); }

 private:
  runtime::Core* core_;
};

}  // namespace opmux
