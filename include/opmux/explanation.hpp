#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <opmux/export.hpp>

namespace opmux {

/// One implementation in a decision, with the verdict on it.
struct Candidate {
  std::string id;       ///< "rms_norm/simd.avx2".
  std::string verdict;  ///< "chosen", "accepted", "last resort" or "refused".
  std::string code;     ///< Stable reason such as "caps.dtype"; empty unless refused.
  std::string reason;   ///< One sentence for people.
  int priority = 0;     ///< From 0 to 1000, as registered.
  double score = 0;     ///< (priority + boosts) * multipliers; orders candidates of one tier.
  /// Conversions it needs: "contiguous(x), widen(y, x)"; empty if none.
  std::string transforms = {};
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

  /// The table that `opmux explain` prints, several lines.
  OPMUX_API std::string to_string() const;
};

/// Writes to_string().
OPMUX_API std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

}  // namespace opmux
