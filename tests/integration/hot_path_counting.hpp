#pragma once

#include <cstdint>
#include <functional>

namespace opmux::test {

/// Calls that a piece of code made into the C library and the kernel.
struct Counts {
  uint64_t allocations, frees, locks, clocks, system_calls;
};

/// Runs `body` in a child process, once to warm up and once counted; in the second run every system
/// call is trapped, counted and refused. `good` is true if the child reached its end and `body`
/// returned true both times.
struct Counted {
  bool good = false;
  Counts counts{};
};
Counted count_second_run(const std::function<bool()>& body);

}  // namespace opmux::test
