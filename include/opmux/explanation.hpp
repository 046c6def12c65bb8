#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// A measured speed of an implementation that applies to a call: a row of a bundle.
struct Measurement {
  std::string verdict;   ///< "faster", "slower", "same" or "unclear", compared with `baseline`.
  std::string baseline;  ///< Id of the implementation that it was compared with.
  /// How many times as fast as the baseline it is, and the bounds of that.
  double speed = 1, low = 1, high = 1;
  uint64_t rounds = 0;   ///< Rounds that were compared.
  std::string rigor;     ///< "quick", "full", or "confirmed" by a second race in a new process.
  std::string date;      ///< "2026-11-16".
  std::string cell;      ///< "f32,f32,f32 K=2048 N=2048 threads=1 eager".
  std::string range;     ///< "M=5..95"; empty for all calls of the cell.
  std::string bundle;    ///< Name of the bundle's file.
  std::string digest;    ///< SHA-256 of the bundle's header.
  std::string found_in;  ///< "local", "OPMUX_TUNING", "shipped" or, measured by it, "online".
  std::string machine;   ///< "GenuineIntel 6-85-7 isa=... cores=2".
  bool aged = false;     ///< Measured with another kernel or microcode.
};

/// Counts of the measured rows of an operator.
struct TuningCounts {
  uint64_t used = 0;     ///< Hold here; includes `aged`.
  uint64_t aged = 0;     ///< Measured with another kernel or microcode.
  uint64_t foreign = 0;  ///< Of another machine.
  /// Of another schema, or of an implementation that is not registered or has another build.
  uint64_t stale = 0;
  uint64_t damaged = 0;  ///< Of a part of a bundle that cannot be read.
};

/// A faster implementation that the runtime found by measuring a sampled call, with the policy
/// `tuning: online`. It is about calls with the types and sizes of that one. Made by
/// TuningControl::proposals().
struct TuningProposal {
  std::string op;
  std::string implementation;  ///< Id of the faster one: "softmax/acme.wide".
  std::string baseline;        ///< Id of the one that calls ran.
  std::string cell;            ///< "f32,f32 H=64 rows=4 threads=1 eager".
  /// How many times as fast as the baseline it is, and the bounds of that.
  double speed = 1, low = 1, high = 1;
  uint64_t rounds = 0;  ///< Rounds that were compared.
  int64_t time = 0;     ///< When; seconds since 1970.
  bool applied = false;
  std::string why_not;  ///< Why later calls do not use it; empty if they do.
};

/// One implementation in a decision, with the verdict on it.
struct Candidate {
  std::string id;       ///< "rms_norm/simd.avx2".
  std::string verdict;  ///< "chosen", "accepted", "last resort" or "refused".
  std::string code;     ///< Stable reason such as "caps.dtype"; empty unless refused.
  std::string reason;   ///< One sentence for people.
  int priority = 0;     ///< From 0 to 1000, as registered, without hints.
  /// (priority + boosts) * multipliers, with the priority of `hint` if there is one; orders
  /// candidates of one tier.
  double score = 0;
  /// Conversions it needs: "contiguous(x), widen(y, x)"; empty if none.
  std::string transforms = {};
  std::optional<Hint> hint = {};  ///< The hint of its author that applies to this call.
  /// The measured speed that applies to this call. Of a refused candidate only if it was compared
  /// with the chosen one.
  std::optional<Measurement> measured = {};
  /// Whether it may run, as first choice or as fallback.
  bool accepted() const { return verdict != "refused"; }
};

/// Why an operator runs the implementation it runs. Operator::explain() makes it by running the
/// decision that a call would run, so it cannot disagree with the call.
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   float x[4];
///   opmux::Explanation why =
///       softmax.explain(opmux::none, opmux::TensorView(x, opmux::f32, {1, 4}));
///   std::cout << why;
///   for (const opmux::Candidate& candidate : why.candidates) {
///     if (!candidate.accepted()) std::cout << candidate.id << ": " << candidate.code << "\n";
///   }
///
/// A plain value: it refers to neither the runtime nor the arguments.
struct Explanation {
  std::string op;
  std::string arguments;    ///< "x=bf16[32,4096] weight=bf16[4096] eps=1e-06".
  std::string device;       ///< "cpu:0".
  uint64_t generation = 0;  ///< Number of the snapshot of registry and policy that decided.
  std::string chosen;       ///< Id of the first choice; empty if no candidate was accepted.
  bool strict = false;      ///< Whether a failure would be returned instead of falling back.
  /// Accepted candidates in the order in which they would be tried, then the refused ones.
  std::vector<Candidate> candidates;
  std::vector<std::string> depends_on;   ///< Facts that can change the decision: "dtype(x)", "H".
  std::vector<std::string> independent;  ///< Named dimensions that cannot change it.
  std::string note;  ///< A preference that was not met, an error in the arguments, OPMUX_DISABLE.
  /// Rows of the operator in the bundles that were found; nullopt if there are none, or if
  /// Policy::tuning is off.
  std::optional<TuningCounts> tuning = {};

  /// The table that `opmux explain` prints, several lines.
  OPMUX_API std::string to_string() const;
};

/// Writes to_string().
OPMUX_API std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

/// Record of one call. Pass one to Operator::with() to have it filled in:
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   float x[4] = {}, y[4];
///   opmux::CallReport report;
///   opmux::Status status = softmax.with(report)(opmux::TensorView(y, opmux::f32, {1, 4}),
///                                               opmux::TensorView(x, opmux::f32, {1, 4}));
///   if (status.ok() && report.fell_back) {
///     std::cerr << report.implementation << " ran: " << report.reason << "\n";
///   }
///
/// A call with a report reads the clock and takes the slow path; for steady monitoring read
/// Runtime::stats() instead. A report may be reused; every field is written on each call, also when
/// the call fails.
struct CallReport {
  std::string implementation;  ///< Ran last: "rms_norm/simd.avx512"; empty if none ran.
  bool fell_back = false;  ///< The first choice did not run, or a preferred candidate was refused.
  /// Why it fell back, or which state of the thread or process the implementation left changed
  /// (event call.left_state); empty otherwise.
  std::string reason;
  std::string transforms;     ///< Conversions of tensors made for it: "contiguous(x), widen(y, x)".
  bool cached = false;        ///< The decision was made before this call.
  uint64_t generation = 0;    ///< Number of the snapshot that decided.
  uint64_t select_ns = 0;     ///< Time spent checking arguments and choosing.
  uint64_t run_ns = 0;        ///< Time inside implementations, failed attempts included.
  Code outcome = Code::ok;    ///< Code of the Status that the call returned.
  uint64_t transform_ns = 0;  ///< Time spent on `transforms`, before and after implementations.
};

/// One fact of a call, as a Selector sees it.
struct SelectorFact {
  std::string name;               ///< As in Selector::reads.
  std::optional<int64_t> number;  ///< Nullopt: the call, or its operator, does not have the fact.
  std::string text;               ///< "bf16", "cpu:0", "true", "4096"; empty if absent.
};

/// The question to a Selector. Everything is borrowed for the call of `pick`.
struct Selection {
  std::string_view op;                  ///< Operator that is being decided.
  std::span<const Candidate> accepted;  ///< Best first; never empty.
  std::span<const SelectorFact> facts;  ///< Those of Selector::reads, in that order.
};

/// A function of the program that may replace the choice by another accepted candidate. It cannot
/// select an implementation that policy, capabilities or health refused.
///
///   opmux::Selector few_rows;
///   few_rows.reads = {"rows"};
///   few_rows.pick = [](const opmux::Selection& asked) -> std::optional<size_t> {
///     if (asked.op != "rms_norm" || asked.facts[0].number.value_or(0) >= 4) return std::nullopt;
///     for (size_t i = 0; i < asked.accepted.size(); ++i) {
///       if (asked.accepted[i].id == "rms_norm/simd.avx2") return i;
///     }
///     return std::nullopt;
///   };
///   opmux::Status status = runtime.set_selector(few_rows);
///
/// It is asked when a class of calls is decided, not on each call. Therefore it must list the facts
/// that it reads: calls that agree in all of them share one answer.
struct Selector {
  std::string name = "selector";  ///< Appears in the event "selector.failed".
  /// Names of facts as explain() prints them after "depends on": "H", "rows", "dtype(x)",
  /// "contiguous(x)", "tag". A fact that an operator does not have is passed without a number.
  std::vector<std::string> reads = {};
  /// Returns the position of a candidate in Selection::accepted; nullopt keeps the choice. Called
  /// from any thread; it must not call into the runtime and must depend on its argument alone. If
  /// it throws or returns a position out of range, the choice stays, and the event
  /// "selector.failed" is logged.
  detail::Function<std::optional<size_t>(const Selection&)> pick = {};
};

}  // namespace opmux
