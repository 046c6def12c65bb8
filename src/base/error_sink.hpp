#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/abi.h>

namespace opmux::base {

/// Longest text that is read from a function of abi.h.
inline constexpr size_t kErrorCapacity = 1024;

/// An opmux_error with room for its text, to be handed to foreign code and then read with care.
class ErrorSink {
 public:
  ErrorSink();
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;

  opmux_error* c() { return &error_; }
  /// What was written, unprintable bytes replaced by '?'; whatever sizes the writer left behind.
  std::string text() const;
  /// The stable word, if it is one: at most 64 bytes of [a-z0-9_.]; else empty.
  std::string code() const;

 private:
  std::array<char, kErrorCapacity> buffer_;  ///< as far as text_size says
  opmux_error error_{};
};

/// Fills in a caller's sink, which may be null, as far as it has room.
void write_error(opmux_error* error, int32_t outcome, std::string_view text) noexcept;

}  // namespace opmux::base
