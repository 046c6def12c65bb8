#include "plugin/read/bounded_read.hpp"

#include <algorithm>

namespace opmux::plugin {
namespace {

/// Length in bytes of the UTF-8 sequence at the front; 0 if it is malformed.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                        : lead >= 0xe0 && lead <= 0xef ? 3
                        : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool beyond = lead == 0xf4 && byte(1) >= 0x90;
  const bool control = lead == 0xc2 && byte(1) < 0xa0;
  return overlong || surrogate || beyond || control ? 0 : length;
}

bool allowed(char c, Lines lines) {
  if (lines == Lines::many && (c == '\n' || c == '\t')) return true;
  return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
}

}  // namespace

bool printable_text(std::string_view text, Lines lines) {
  while (!text.empty()) {
    const size_t length = allowed(text.front(), lines) ? sequence_length(text) : 0;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Result<std::string> read_text(opmux_str text, std::string_view what, Lines lines) {
  if (text.size > kLongestText) {
    return malformed("string", base::concat(what, " has a size of ", text.size, " bytes; at most ",
                                            kLongestText, " are allowed"));
  }
  if (text.size == 0) return std::string();
  if (text.data == nullptr) {
    return malformed("string",
                     base::concat(what, " has a size of ", text.size, " bytes but a null pointer"));
  }
  std::string copy(text.data, text.size);
  if (printable_text(copy, lines)) return copy;
  return malformed("string", base::concat(what, " is not UTF-8 or holds a control character"));
}

Status check_array(const void* data, uint32_t count, uint32_t stride, size_t least,
                   std::string_view what) {
  if (count == 0) return {};
  if (count > kMostItems) {
    return malformed(
        "count", base::concat(what, ": the count ", count, " exceeds the limit of ", kMostItems));
  }
  if (data == nullptr)
    return malformed("null",
                     base::concat(what, ": the count is ", count, " but the pointer is null"));
  const bool aligned = least % alignof(void*) != 0 || stride % alignof(void*) == 0;
  if (stride < least || stride > kLargestStride || !aligned) {
    return malformed("stride",
                     base::concat(what, ": the stride is ", stride, " bytes; at least ", least,
                                  " are required, in multiples of ", alignof(void*)));
  }
  return {};
}

Status check_reserved(uint64_t field, std::string_view what) {
  if (field == 0) return {};
  return malformed("reserved", base::concat("a reserved field of ", what, " is not zero"));
}

}  // namespace opmux::plugin
