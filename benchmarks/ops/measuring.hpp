#pragma once

#include <functional>
#include <map>
#include <string>

#include "result.hpp"

namespace opmux::bench {

/// Measures every implementation at one point after the other.
class Measuring {
 public:
  Measuring(Runtime& runtime, int pairs) : runtime_(runtime), pairs_(pairs) {}

  /// Adds one result for every implementation of the point's operator.
  void measure(const Point& point, Report& report);

 private:
  Result measure_one(const Point& point, const class Buffers& buffers, const std::string& id);

  Runtime& runtime_;
  int pairs_;
  std::map<std::string, double> ns_per_work_;  ///< at the last point, by implementation and dtype
};

/// Nanoseconds that a handle call adds to an empty kernel.
double no_op_overhead();

}  // namespace opmux::bench
