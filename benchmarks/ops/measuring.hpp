#pragma once

#include <functional>
#include <map>
#include <string>

#include "result.hpp"

namespace opmux::bench {

/// Measures points one after the other, each implementation in turn.
class Measuring {
 public:
  Measuring(Runtime& runtime, int pairs) : runtime_(runtime), pairs_(pairs) {}

  /// Adds what every implementation of the point's operator does there.
  void measure(const Point& point, Report& report);

 private:
  Result measure_one(const Point& point, const class Buffers& buffers, const std::string& id);

  Runtime& runtime_;
  int pairs_;
  std::map<std::string, double> ns_per_work_;  ///< by implementation and dtype, at its last point
};

/// Nanoseconds that a guarded call adds to a kernel that does nothing.
double no_op_overhead();

}  // namespace opmux::bench
