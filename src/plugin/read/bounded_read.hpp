#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "base/text.hpp"

/// Reads structs that a plugin filled in. Every size, count and text is checked before use, because
/// the plugin is not trusted.
namespace opmux::plugin {

inline constexpr uint32_t kMostItems = 4096;       ///< limit for arrays
inline constexpr size_t kLongestText = 64 * 1024;  ///< limit for texts, in bytes
/// Limit for strides of arrays, in bytes.
inline constexpr uint32_t kLargestStride = 1 << 16;

/// An error about a descriptor. `reason` is given without the "plugin." prefix.
inline Status malformed(std::string_view reason, std::string message) {
  return {Code::invalid_argument, base::concat("plugin.", reason), std::move(message)};
}

enum class Lines { one, many };  ///< whether a text may contain newlines and tabs

/// Copies a text; it must be UTF-8 without control characters. Fails with "plugin.string".
Result<std::string> read_text(opmux_str text, std::string_view what, Lines lines = Lines::one);
/// Whether a text is well-formed UTF-8 without control characters.
bool printable_text(std::string_view text, Lines lines);

/// The size of a struct in the first ABI version: up to and including its last field.
#define OPMUX_SIZE_TO(type, last) \
  (offsetof(type, last) + sizeof(type::last)) /* NOLINT(bugprone-sizeof-expression) */

/// Copies a struct that begins with its size; missing fields at the end become zero. At most `room`
/// bytes may be read. Fails with "plugin.struct_size".
template <class T>
Status read_struct(const void* from, size_t least, size_t room, std::string_view what, T& into) {
  uint32_t size = 0;
  std::memcpy(&size, from, sizeof(size));
  if (size < least || size > room) {
    return malformed("struct_size", base::concat(what, " has a struct_size of ", size,
                                                 " bytes; it must be ", least, " to ", room));
  }
  into = T{};
  std::memcpy(static_cast<void*>(&into), from, size < sizeof(T) ? size : sizeof(T));
  return {};
}

/// Checks pointer, count and stride of an array. Fails with "plugin.count", "plugin.null" or
/// "plugin.stride".
Status check_array(const void* data, uint32_t count, uint32_t stride, size_t least,
                   std::string_view what);

/// Copies element `index` of an array that check_array accepted.
template <class T>
Status read_element(const T* data, uint32_t index, uint32_t stride, size_t least,
                    std::string_view what, T& into) {
  const char* at = reinterpret_cast<const char*>(data) + size_t{index} * stride;
  return read_struct(at, least, stride, base::concat(what, " ", index + 1), into);
}

/// Copies all elements; fails at the first malformed one.
template <class T>
Result<std::vector<T>> read_array(const T* data, uint32_t count, uint32_t stride, size_t least,
                                  std::string_view what) {
  if (Status bad = check_array(data, count, stride, least, what); !bad.ok()) return bad;
  std::vector<T> items(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (Status bad = read_element(data, i, stride, least, what, items[i]); !bad.ok()) return bad;
  }
  return items;
}

/// Copies an array of plain values that has no stride.
template <class T>
Result<std::vector<T>> read_values(const T* data, uint32_t count, std::string_view what) {
  if (Status bad = check_array(data, count, sizeof(T), sizeof(T), what); !bad.ok()) return bad;
  std::vector<T> items(count);
  if (count != 0) std::memcpy(items.data(), data, count * sizeof(T));
  return items;
}

/// Fails with "plugin.reserved" unless the field is zero.
Status check_reserved(uint64_t field, std::string_view what);

}  // namespace opmux::plugin
