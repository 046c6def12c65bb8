#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/function.hpp>
#include <opmux/explanation.hpp>

namespace opmux {

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
  std::string name = "selector";  ///< Appears in explain().
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
