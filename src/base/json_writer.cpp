#include "base/json_writer.hpp"

#include <cmath>

#include "base/text.hpp"

namespace opmux::base {
namespace {

/// Length in bytes of the UTF-8 sequence at the start of `text`; 0 if it is not well-formed.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    out.append({'\\', c});
  } else if (c == '\n') {
    out.append("\\n");
  } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
    out.append("\\u00").append(
        {kDigits[static_cast<size_t>(c >> 4)], kDigits[static_cast<size_t>(c & 15)]});
  } else {
    out.push_back(c);
  }
}

}  // namespace

void JsonWriter::separate() {
  if (!first_) out_.push_back(',');
  first_ = false;
}

void JsonWriter::quote(std::string_view value) {
  out_.push_back('"');
  while (!value.empty()) {
    const size_t length = sequence_length(value);
    if (length == 0) {
      out_.append("\xEF\xBF\xBD");
    } else if (length == 1) {
      append_escaped(out_, value.front());
    } else {
      out_.append(value.substr(0, length));
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  out_.push_back('"');
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_.push_back(bracket);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_.push_back(bracket);
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  out_.push_back(':');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  separate();
  quote(value);
  return *this;
}

JsonWriter& JsonWriter::texts(const std::vector<std::string>& values) {
  open('[');
  for (const std::string& value : values) text(value);
  return close(']');
}

JsonWriter& JsonWriter::number(int64_t value) {
  separate();
  out_.append(std::to_string(value));
  return *this;
}

JsonWriter& JsonWriter::number(uint64_t value) {
  separate();
  out_.append(std::to_string(value));
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  separate();
  out_.append(std::isfinite(value) ? number_text(value) : "null");
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  out_.append(value ? "true" : "false");
  return *this;
}

}  // namespace opmux::base
