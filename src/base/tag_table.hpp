#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opmux::base {

/// Returns the number of a word, unique in the process. Numbers start with 1 and are never reused.
/// Thread-safe. A forked child inherits the table, unless the fork interrupted a change.
uint32_t tag_number(std::string_view word);

/// Returns the word of a number; empty for 0 and for unassigned numbers.
std::string tag_word(uint32_t number);

}  // namespace opmux::base
