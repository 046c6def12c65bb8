#include "base/json_writer.hpp"

#include <cmath>

#include "base/text.hpp"

namespace opmux::base {
namespace {

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
    const size_t length = utf8_length(value);
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

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

}  // namespace opmux::base
