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
/// Prints everything except operators and choices.
void print_runtime(const RuntimeState& runtime);

/// Prints the implementations that a process runs, with their calls. Operators that were never
/// called are only counted, unless the process has a single operator.
void print_calls(const ProcessState& process);

/// Prints for each class of calls the chosen implementation and its fallbacks, and the
/// implementations that cannot run.
void print_choices(const ProcessState& process);

}  // namespace opmux::cli
