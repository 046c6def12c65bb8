#pragma once

#include <cstdint>

namespace opmux::test {

/// How often the process asked the C library for memory, or gave some back; a program that links
/// allocations.cpp counts.
uint64_t allocations_so_far();
uint64_t frees_so_far();

}  // namespace opmux::test
