#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opmux::base {

/// True if the text is a valid calendar date such as "2027-02-01".
bool is_date(std::string_view text);

/// Today in UTC.
std::string today();

/// The first second after that day, as UTC seconds since 1970. Nullopt if the date is not valid.
std::optional<int64_t> end_of_day(std::string_view date);

}  // namespace opmux::base
