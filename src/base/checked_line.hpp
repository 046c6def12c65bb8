#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opmux::base {

/// The text with a check sum behind it and a line end: what was torn or changed shows.
std::string checked_line(std::string_view text);

/// The text of such a line, which has no line end; nothing if it is not as it was written.
std::optional<std::string_view> text_of_checked(std::string_view line);

/// Takes the part before the first `end` off the front of a text, the separator too; all of it if
/// there is none.
std::string_view take_until(std::string_view& rest, char end);

}  // namespace opmux::base
