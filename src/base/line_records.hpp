#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opmux::base {

/// Returns the text with a checksum and a newline appended, so that readers can detect torn or
/// changed lines.
std::string checked_line(std::string_view text);

/// Returns the text of a checked line, which must be passed without its newline. Nullopt if the
/// checksum does not match.
std::optional<std::string_view> text_of_checked(std::string_view line);

/// Removes and returns the part of `rest` before the first `end`, and removes `end` too. Takes all
/// of `rest` if it does not contain `end`.
std::string_view take_until(std::string_view& rest, char end);

}  // namespace opmux::base
