#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace opmux::test {

/// How often the process asked the C library for memory, or gave some back; a program that links
/// allocations.cpp counts.
uint64_t allocations_so_far();
uint64_t frees_so_far();

/// From now on, what code in loaded libraries with one of these words in their names asks for is
/// counted apart, and not by allocations_so_far(). Not thread-safe.
void count_apart(std::initializer_list<std::string_view> libraries);
uint64_t allocations_apart();

}  // namespace opmux::test
