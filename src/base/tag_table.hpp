#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opmux::base {

/// The number of a word, the same in the whole process; numbers start with 1 and are never given
/// twice. Thread-safe; a forked child goes on with what was there unless it forked amid a change.
uint32_t tag_number(std::string_view word);

/// The word of a number; empty for 0 and for numbers that were not given.
std::string tag_word(uint32_t number);

}  // namespace opmux::base
