#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace opmux::test {

/// Number of allocations and frees of the process so far; counted in programs that link
/// allocations.cpp.
uint64_t allocations_so_far();
uint64_t frees_so_far();

/// From now on, allocations by loaded libraries whose names contain one of these words are counted
/// separately and not in allocations_so_far(). Not thread-safe.
void count_apart(std::initializer_list<std::string_view> libraries);
uint64_t allocations_apart();

}  // namespace opmux::test
