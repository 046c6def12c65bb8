#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opmux::base {

/// Whether a text is a day of the calendar: "2027-02-01".
bool is_date(std::string_view text);

/// Today in UTC.
std::string today();

/// The first second (UTC, since 1970) that is after that day; nothing if it is none.
std::optional<int64_t> end_of_day(std::string_view date);

}  // namespace opmux::base
