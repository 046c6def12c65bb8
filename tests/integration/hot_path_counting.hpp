#pragma once

#include <cstdint>
#include <functional>

namespace opmux::test {

/// What a piece of code asked of the C library and of the kernel.
struct Counts {
  uint64_t allocations, frees, locks, clocks, system_calls;
};

/// Runs `body` in a child process, once to warm up and once counted; every system call of the
/// second run is trapped, counted and refused. `good` says whether the child came to its end and
/// `body` returned true both times.
struct Counted {
  bool good = false;
  Counts counts{};
};
Counted count_second_run(const std::function<bool()>& body);

}  // namespace opmux::test
