#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/abi.h>

namespace opmux::base {

/// Maximum length of an error text from a function of abi.h.
inline constexpr size_t kErrorCapacity = 1024;

/// An opmux_error with a buffer for its text. Foreign code fills it in, so the accessors validate
/// every field.
class ErrorSink {
 public:
  ErrorSink();
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;

  opmux_error* c() { return &error_; }
  /// The text that was written, limited to the buffer, with unprintable bytes replaced by '?'.
  std::string text() const;
  /// The reason code if it is valid: at most 64 characters of [a-z0-9_.]; otherwise empty.
  std::string code() const;

 private:
  std::array<char, kErrorCapacity> buffer_;  ///< initialized up to error_.text_size
  opmux_error error_{};
};

/// Writes an error to a caller's opmux_error, which may be null. Truncates the text if needed.
void write_error(opmux_error* error, int32_t outcome, std::string_view text) noexcept;

}  // namespace opmux::base
