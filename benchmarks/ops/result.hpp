#pragma once

#include <optional>
#include <string>
#include <vector>

#include "point.hpp"

namespace opmux::bench {

/// What was measured of one implementation at one point.
struct Result {
  Point point;
  std::string implementation;
  std::string skipped;  ///< why nothing was measured; empty otherwise
  double ns = 0;        ///< of a dispatched call
  bool chosen = false;  ///< a plain call of this point runs it
  /// Against the engine called by hand, or against its own kernel called without any checks.
  std::string bare;
  double bare_ns = 0, ratio = 0;
  int pairs = 0;
  /// Per call, after the first: what opmux and its backends asked for, and what the engine did
  /// beyond its bare side; and all of the engine's, which no caller of it is spared.
  double allocations = 0, engine_allocations = 0;

  /// Whether the ratio counts: the kernel is long enough for a clock, and an engine stands beside
  /// it.
  bool limited() const;
  bool reference() const;
};

/// Everything that one run found.
struct Report {
  std::vector<Result> results;
  double overhead_ns = 0;  ///< of a call of a kernel that does nothing, over the bare call
};

/// Limits of --check; `slack` widens them.
std::vector<std::string> misses(const Report& report, double slack);

std::string to_json(const Report& report);
std::string to_table(const Report& report);

}  // namespace opmux::bench
