#pragma once

#include <cstdint>
#include <string>

#include <opmux/state_page.hpp>

namespace opmux::cli {

/// "2026-11-16 02:40:11 UTC".
std::string moment(int64_t seconds);

/// What a process runs, and how often. Operators that were never called are counted, unless the
/// process has but one.
void print_calls(const ProcessState& process);

/// Which calls run what, who stands behind it, and who cannot run.
void print_choices(const ProcessState& process);

}  // namespace opmux::cli
