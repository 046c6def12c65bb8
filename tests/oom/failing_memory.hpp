#pragma once

#include <cstdint>

/// Replaces the allocation functions of the process, so that a test can make one of them fail and
/// count the blocks that are in use.
namespace opmux::test {

/// Which allocations fail after the first failure.
enum class Failing : uint8_t {
  once,    ///< none: the following allocation succeeds
  lasting  ///< all, until stop_failing()
};

/// Makes the n-th allocation of the calling thread fail, counted from 1. Other threads are not
/// affected.
void fail_allocation(uint64_t n, Failing failing);
/// Ends the failures of the calling thread. Returns how many allocations failed.
uint64_t stop_failing();

/// The number of blocks that the process has allocated and not freed.
int64_t blocks_in_use();
/// Whether AddressSanitizer allocates: programs are several times slower then, and it looks for
/// other mistakes than leaks.
bool memory_is_sanitized();

/// Writes the stack of the first failed allocation, and that of the caller, to standard error.
/// Allocates nothing.
void print_failed_allocation();

}  // namespace opmux::test
