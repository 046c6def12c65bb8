#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include <opmux/detail/function.hpp>

/// Conversions from std::chrono types for functions that take them, without <chrono>, which costs
/// every source that includes opmux a quarter of a second. Internal: programs do not use them by
/// name.
namespace opmux::detail {

/// A std::chrono::duration of whole numbers that std::chrono::nanoseconds can represent exactly.
template <class T>
concept ExactDuration = std::integral<typename T::rep> && requires(const T& duration) {
  { duration.count() } -> std::same_as<typename T::rep>;
  requires 1'000'000'000 % T::period::den == 0;
};

template <ExactDuration Duration>
constexpr int64_t nanoseconds_of(const Duration& duration) {
  return static_cast<int64_t>(duration.count()) * Duration::period::num *
         (1'000'000'000 / Duration::period::den);
}

/// A function that returns the time of day as std::chrono::sys_seconds; it may be empty. Returns
/// the seconds since 1970 when called.
class UtcClock {
 public:
  UtcClock() = default;
  template <class Function>
    requires(!std::same_as<Function, UtcClock>) && requires(Function& function) {
      requires ExactDuration<decltype(function().time_since_epoch())>;
      requires decltype(function().time_since_epoch())::period::den == 1;
    }
  UtcClock(Function function)  // NOLINT(*-explicit-*)
      : seconds_([function = std::move(function)]() mutable -> int64_t {
          const auto since = function().time_since_epoch();
          return static_cast<int64_t>(since.count()) * decltype(since)::period::num;
        }) {}

  explicit operator bool() const { return static_cast<bool>(seconds_); }
  int64_t operator()() const { return seconds_(); }

 private:
  Function<int64_t()> seconds_;
};

}  // namespace opmux::detail
