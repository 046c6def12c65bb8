#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <opmux/runtime.hpp>

namespace opmux {

namespace detail {

template <class T>
constexpr std::string_view point_type() {
  if constexpr (std::same_as<T, Device>) return "Device";
  if constexpr (std::same_as<T, bool>) return "bool";
  if constexpr (std::integral<T>) return "int";
  if constexpr (std::floating_point<T>) return "float";
  return "str";
}

template <class T>
opmux_arg point_argument(const T& value) {
  opmux_arg arg{};
  if constexpr (std::same_as<T, Device>) {
    arg.tag = OPMUX_ARG_I64;
    arg.value.i64 = static_cast<uint32_t>(value.type) | int64_t{value.id} << 32;
  } else if constexpr (std::same_as<T, bool>) {
    arg.tag = OPMUX_ARG_BOOL;
    arg.value.i64 = value ? 1 : 0;
  } else if constexpr (std::integral<T>) {
    arg.tag = OPMUX_ARG_I64;
    arg.value.i64 = static_cast<int64_t>(value);
  } else if constexpr (std::floating_point<T>) {
    arg.tag = OPMUX_ARG_F64;
    arg.value.f64 = static_cast<double>(value);
  } else {
    const std::string_view text(value);
    arg.tag = OPMUX_ARG_STR;
    arg.value.list = {text.data(), text.size()};
  }
  return arg;
}

template <class T>
T point_value(const opmux_arg& arg) {
  if constexpr (std::same_as<T, Device>) {
    return {static_cast<int32_t>(arg.value.i64), static_cast<int32_t>(arg.value.i64 >> 32)};
  } else if constexpr (std::same_as<T, bool>) {
    return arg.value.i64 != 0;
  } else if constexpr (std::integral<T>) {
    return static_cast<T>(arg.value.i64);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(arg.value.f64);
  } else {
    return T(static_cast<const char*>(arg.value.list.data), arg.value.list.size);
  }
}

OPMUX_API Status declare_point(Runtime& runtime, const std::string& signature);
/// Asks a point, declaring it if needed: false if nobody answers.
OPMUX_API bool ask_point(Runtime& runtime, const std::string& signature, const opmux_arg* args,
                         uint32_t count, opmux_arg& answer);
OPMUX_API Result<Registration> answer_point(
    Runtime& runtime, const std::string& signature, std::string_view backend,
    std::function<bool(const opmux_arg* args, uint32_t count, opmux_arg& answer)> function);

}  // namespace detail

/// An answer, or none. An answer of 0, false or "" is an answer.
template <class T>
class PointAnswer {
 public:
  PointAnswer() = default;
  explicit PointAnswer(T value) : value_(std::move(value)) {}

  bool has_value() const { return value_.has_value(); }
  const std::optional<T>& optional() const { return value_; }
  /// The answer; `otherwise` runs only if there is none.
  template <class Otherwise>
  T value_or_else(Otherwise&& otherwise) const {
    return value_ ? *value_ : static_cast<T>(otherwise());
  }

 private:
  std::optional<T> value_;
};

template <class Signature>
class Point;

/// A typed question in shared code that a backend or plugin may answer: int, float, bool, str,
/// Device.
///
///     inline constexpr opmux::Point<int64_t(opmux::Device)> kTileN{"gemm.tile_n"};
///     int64_t tile = kTileN.ask(runtime, device).value_or_else([&] { return default_tile(device);
/// });
template <class Answer, class... Parameters>
class Point<Answer(Parameters...)> {
 public:
  constexpr explicit Point(std::string_view name) : name_(name) {}

  /// "gemm.tile_n(Device) -> int".
  std::string signature() const {
    std::string text(name_);
    text += "(";
    [[maybe_unused]] const char* separator = "";
    ((text.append(separator).append(detail::point_type<Parameters>()), separator = ", "), ...);
    return text.append(") -> ").append(detail::point_type<Answer>());
  }

  /// Makes the point known, so that a misspelt or mistyped answer is refused when it is registered.
  Status declare(Runtime& runtime) const { return detail::declare_point(runtime, signature()); }

  PointAnswer<Answer> ask(Runtime& runtime, const Parameters&... args) const {
    const opmux_arg packed[sizeof...(Parameters) + 1] = {detail::point_argument(args)...};
    opmux_arg answer{};
    if (!detail::ask_point(runtime, signature(), packed, sizeof...(Parameters), answer)) return {};
    return PointAnswer<Answer>(detail::point_value<Answer>(answer));
  }

  /// The question as a function of its own.
  std::function<std::optional<Answer>(Parameters...)> function(Runtime& runtime) const {
    return [this, &runtime](Parameters... args) { return ask(runtime, args...).optional(); };
  }

  /// Answers on behalf of a backend that is registered. The function returns an optional.
  template <class Function>
  Result<Registration> answer(Runtime& runtime, std::string_view backend, Function function) const {
    return detail::answer_point(
        runtime, signature(), backend,
        [function = std::move(function)](const opmux_arg* args, uint32_t, opmux_arg& result) {
          return call_with(function, args, result, std::index_sequence_for<Parameters...>{});
        });
  }

 private:
  template <class Function, size_t... I>
  static bool call_with(const Function& function, [[maybe_unused]] const opmux_arg* args,
                        opmux_arg& result, std::index_sequence<I...>) {
    std::optional<Answer> answer = function(detail::point_value<Parameters>(args[I])...);
    if (!answer) return false;
    // Text must outlive this call; whoever asks copies it at once.
    thread_local Answer kept;
    kept = std::move(*answer);
    result = detail::point_argument(kept);
    return true;
  }

  std::string_view name_;
};

}  // namespace opmux
