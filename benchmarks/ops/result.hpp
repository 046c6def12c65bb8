#pragma once

#include <optional>
#include <string>
#include <vector>

#include "point.hpp"

namespace opmux::bench {

/// The figures of one implementation at one point.
struct Result {
  Point point;
  std::string implementation;
  std::string skipped;  ///< reason for which nothing was measured; else empty
  double ns = 0;        ///< median time of a dispatched call
  bool chosen = false;  ///< a plain call of this point uses this implementation
  /// Name, time and ratio of the direct call of the engine; empty and 0 if it was not compared.
  std::string bare;
  double bare_ns = 0, ratio = 0;
  int pairs = 0;
  /// Allocations per call, without the first call. `engine_allocations` counts all allocations of
  /// the engine; `allocations` counts those of opmux and its backends, and those by which the
  /// engine exceeds its direct call.
  double allocations = 0, engine_allocations = 0;

  /// Whether --check limits the ratio: there is an engine to compare with, and its direct call
  /// takes at least 20 us.
  bool limited() const;
  bool reference() const;
};

/// All results of one run.
struct Report {
  std::vector<Result> results;
  double overhead_ns = 0;  ///< a dispatched call of an empty kernel, minus the bare call
};

/// Descriptions of all missed limits of --check; `slack` multiplies the allowed overhead.
std::vector<std::string> misses(const Report& report, double slack);

std::string to_json(const Report& report);
std::string to_table(const Report& report);

}  // namespace opmux::bench
