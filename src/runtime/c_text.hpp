#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include <opmux/json.hpp>

#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"

namespace opmux::runtime {

/// A buffer for a text, with the semantics of snprintf.
struct Destination {
  char* buffer;
  size_t capacity;
  size_t* size;

  Status write(std::string_view text) const {
    if (size != nullptr) *size = text.size();
    if (capacity == 0) return {};
    if (Status bad = none_null("buffer", buffer); !bad.ok()) return bad;
    const size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
    return {};
  }
};

/// Writes the JSON of the result of `about`.
template <class Ask>
int32_t ask(opmux_runtime* runtime, const Destination& to, opmux_error* error, Ask&& about) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return to.write(to_json(about(runtime->cpp)));
  });
}

}  // namespace opmux::runtime
