#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <opmux/export.hpp>

namespace opmux {

/// One candidate of a decision, and what became of it.
struct Candidate {
  std::string id;
  std::string verdict;  ///< "chosen", "accepted", "last resort" or "refused"
  std::string code;     ///< stable reason word; empty unless refused
  std::string reason;   ///< one sentence
  int priority = 0;
  double score = 0;
  std::string transforms = {};  ///< that it needs: "contiguous(x), widen(y, x)"
  bool accepted() const { return verdict != "refused"; }
};

/// Why an operator runs what it runs: the very decision that a call would make, with its reasons.
struct Explanation {
  std::string op;
  std::string arguments;  ///< "x=bf16[32,4096] weight=bf16[4096] eps=1e-06"
  std::string device;     ///< "cpu:0"
  uint64_t generation = 0;
  std::string chosen;  ///< id; empty if nothing is left
  bool strict = false;
  std::vector<Candidate>
      candidates;  ///< in the order in which they would be tried, then the refused
  std::vector<std::string> depends_on;   ///< the facts that can change the answer
  std::vector<std::string> independent;  ///< named dimensions that cannot
  std::string note;                      ///< dispatch is bypassed, a preference was not met ...

  /// The table that `opmux explain` prints.
  OPMUX_API std::string to_string() const;
};

OPMUX_API std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

}  // namespace opmux
