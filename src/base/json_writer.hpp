#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opmux::base {

/// Writes JSON with members in the order of the calls. Bytes that are not valid UTF-8 become
/// U+FFFD.
///
///     JsonWriter json;
///     json.open('{').key("op").text("rms_norm").key("calls").number(3).close('}');
class JsonWriter {
 public:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& key(std::string_view name);
  JsonWriter& text(std::string_view value);
  JsonWriter& texts(const std::vector<std::string>& values);
  JsonWriter& number(int64_t value);
  JsonWriter& number(uint64_t value);
  /// Writes null if the value is not finite, because JSON cannot represent it.
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();

  std::string take() { return std::move(out_); }

 private:
  void separate();
  void quote(std::string_view value);

  std::string out_;
  bool first_ = true;
};

}  // namespace opmux::base
