#include "telemetry/page_record.hpp"

#include <charconv>

#include "base/checked_line.hpp"

namespace opmux::telemetry {

std::string escaped_field(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\\': out += "\\\\"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view PageFields::next() { return base::take_until(rest_, separator_); }

std::string PageFields::text() {
  const std::string_view field = next();
  std::string out;
  out.reserve(field.size());
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      out += field[i];
      continue;
    }
    if (++i == field.size()) {
      good_ = false;
      break;
    }
    out += field[i] == 't' ? '\t' : field[i] == 'n' ? '\n' : field[i];
  }
  return out;
}

template <class T>
T PageFields::integer() {
  const std::string_view field = next();
  T value = 0;
  if (field.empty()) return value;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) good_ = false;
  return value;
}
template int64_t PageFields::integer<int64_t>();
template uint64_t PageFields::integer<uint64_t>();

}  // namespace opmux::telemetry
