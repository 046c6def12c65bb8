#include "base/system/clock.hpp"

#include <charconv>
#include <chrono>

#include "base/text.hpp"

namespace opmux::base {
namespace {

/// Parses an unsigned decimal number; -1 for anything else.
int number_of(std::string_view digits) {
  unsigned number = 0;
  const char* const begin = digits.data();
  const char* const end = begin + digits.size();
  const auto read = std::from_chars(begin, end, number);
  return read.ec == std::errc() && read.ptr == end ? static_cast<int>(number) : -1;
}

std::optional<std::chrono::year_month_day> day_of(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const int year = number_of(text.substr(0, 4)), month = number_of(text.substr(5, 2)),
            day = number_of(text.substr(8, 2));
  if (year < 0 || month < 0 || day < 0) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  return date.ok() ? std::optional(date) : std::nullopt;
}

}  // namespace

bool is_date(std::string_view text) { return day_of(text).has_value(); }

std::string today() {
  const std::chrono::year_month_day date(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  const auto padded = [](unsigned number) { return concat(number < 10 ? "0" : "", number); };
  return concat(static_cast<int>(date.year()), "-", padded(static_cast<unsigned>(date.month())),
                "-", padded(static_cast<unsigned>(date.day())));
}

std::optional<int64_t> end_of_day(std::string_view date) {
  const auto day = day_of(date);
  if (!day) return std::nullopt;
  const auto next = std::chrono::sys_days(*day) + std::chrono::days(1);
  return std::chrono::duration_cast<std::chrono::seconds>(next.time_since_epoch()).count();
}

}  // namespace opmux::base
