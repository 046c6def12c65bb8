#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/explanation.hpp>

namespace opmux {

/// One fact of a call, as a Selector sees it.
struct SelectorFact {
  std::string name;               ///< as in Selector::reads
  std::optional<int64_t> number;  ///< nothing: the call, or its operator, has no such thing
  std::string text;               ///< "bf16", "cpu:0", "true", "4096"; empty if there is none
};

/// What a Selector is asked.
struct Selection {
  std::string_view op;
  std::span<const Candidate> accepted;  ///< best first; never empty
  std::span<const SelectorFact> facts;  ///< those of Selector::reads, in that order
};

/// A program's own word in choosing: may pick another one of the candidates that policy,
/// capabilities and health accept. Asked when a class of calls is decided, not at each call: what
/// it looks at must be named, and calls that differ in nothing else get its first answer.
struct Selector {
  std::string name = "selector";  ///< for explain
  /// Names of facts as explain prints them: "H", "rows", "dtype(x)", "contiguous(x)", "tag". An
  /// operator that has no such fact gives nothing.
  std::vector<std::string> reads = {};
  /// The position of one in Selection::accepted; nothing leaves the choice as it is. From any
  /// thread; must not call into the runtime. One that throws, or answers what is no position,
  /// leaves the choice as it is and is told as "selector.failed".
  std::function<std::optional<size_t>(const Selection&)> pick = {};
};

}  // namespace opmux
