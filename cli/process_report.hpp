#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/state_page.hpp>

namespace opmux::cli {

/// "2001-09-09 01:46:40 UTC".
std::string moment(int64_t seconds);

/// "1 rule", "2 rules".
std::string plural(uint64_t count, std::string_view what);
/// "policy.denied by ...", "backend.unavailable: ...".
std::string refusal_text(const ImplementationPageState& own);

void print_process(const ProcessState& process);
/// All but operators and choices.
void print_runtime(const RuntimeState& runtime);

/// What a process runs, and how often. Operators that were never called are counted, unless the
/// process has but one.
void print_calls(const ProcessState& process);

/// Which calls run what, who stands behind it, and who cannot run.
void print_choices(const ProcessState& process);

}  // namespace opmux::cli
