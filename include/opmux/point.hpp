#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <opmux/detail/function.hpp>
#include <opmux/runtime.hpp>

namespace opmux {

namespace detail {

/// The name of a C++ type in the signature of a point.
template <class T>
constexpr std::string_view point_type() {
  if constexpr (std::same_as<T, Device>) return "Device";
  if constexpr (std::same_as<T, bool>) return "bool";
  if constexpr (std::integral<T>) return "int";
  if constexpr (std::floating_point<T>) return "float";
  return "str";
}

/// A value as an argument of a point. Text is borrowed.
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

/// The inverse of point_argument(); text is copied.
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

/// Library side of Point::declare().
OPMUX_API Status declare_point(Runtime& runtime, const std::string& signature);
/// Asks a point, declaring it if needed. Returns false if no backend answers.
OPMUX_API bool ask_point(Runtime& runtime, const std::string& signature, const opmux_arg* args,
                         uint32_t count, opmux_arg& answer);
/// Library side of Point::answer().
OPMUX_API Result<Registration> answer_point(
    Runtime& runtime, const std::string& signature, std::string_view backend,
    detail::Function<bool(const opmux_arg* args, uint32_t count, opmux_arg& answer)> function);

}  // namespace detail

/// An answer, or none. 0, false and "" are answers: they differ from "no answer".
template <class T>
class PointAnswer {
 public:
  PointAnswer() = default;
  explicit PointAnswer(T value) : value_(std::move(value)) {}

  /// Whether a backend answered.
  bool has_value() const { return value_.has_value(); }
  /// The answer as an optional. Valid as long as this object.
  const std::optional<T>& optional() const { return value_; }
  /// The answer, or the result of `otherwise()`, which runs only if there is no answer.
  template <class Otherwise>
  T value_or_else(Otherwise&& otherwise) const {
    return value_ ? *value_ : static_cast<T>(otherwise());
  }

 private:
  std::optional<T> value_;
};

template <class Signature>
class Point;

/// A specialization point: a typed question in shared code that a backend or plugin may answer,
/// such as a tile size or a feature switch. Types are integers, floating-point numbers, bool,
/// Device and text (std::string as the answer).
///
///   static constexpr opmux::Point<int64_t(opmux::Device)> kTileN{"gemm.tile_n"};
///   const int64_t tile =
///       kTileN.ask(runtime, opmux::Device{}).value_or_else([] { return int64_t{64}; });
///   opmux::Result<opmux::Registration> answer =
///       kTileN.answer(runtime, "reference",
///                     [](opmux::Device) { return std::optional<int64_t>(128); });
///   std::cout << tile << (answer ? "" : answer.error().message()) << "\n";
///
/// Backends are asked in the order of their priority. Backends that are switched off, unavailable
/// or denied by a policy are skipped. A point holds only its name, so it can be a global constant;
/// it is safe to use from any thread. `name` must have static lifetime.
template <class Answer, class... Parameters>
class Point<Answer(Parameters...)> {
 public:
  /// A point of this name, "library.question". Nothing is registered yet.
  constexpr explicit Point(std::string_view name) : name_(name) {}

  /// The full signature: "gemm.tile_n(Device) -> int".
  std::string signature() const {
    std::string text(name_);
    text += "(";
    [[maybe_unused]] const char* separator = "";
    ((text.append(separator).append(detail::point_type<Parameters>()), separator = ", "), ...);
    return text.append(") -> ").append(detail::point_type<Answer>());
  }

  /// Makes the point known to a runtime, so that a misspelt or mistyped answer is refused when it
  /// is registered; ask() does it too. Fails with `already_exists` ("point.signature") if the name
  /// is declared with other types.
  Status declare(Runtime& runtime) const { return detail::declare_point(runtime, signature()); }

  /// Asks the backends. Returns no answer if none of them has one, or if the point is declared with
  /// other types. Takes microseconds: ask once and keep the answer, not in a hot loop.
  PointAnswer<Answer> ask(Runtime& runtime, const Parameters&... args) const {
    const opmux_arg packed[sizeof...(Parameters) + 1] = {detail::point_argument(args)...};
    opmux_arg answer{};
    if (!detail::ask_point(runtime, signature(), packed, sizeof...(Parameters), answer)) return {};
    return PointAnswer<Answer>(detail::point_value<Answer>(answer));
  }

  /// The question as a function for code that does not know opmux. This point and the runtime must
  /// outlive it.
  detail::Function<std::optional<Answer>(Parameters...)> function(Runtime& runtime) const {
    return [this, &runtime](Parameters... args) { return ask(runtime, args...).optional(); };
  }

  /// Registers an answer on behalf of a backend. `function` takes the parameters and returns
  /// std::optional<Answer>; it is copied, and called from any thread until the Registration is
  /// destroyed. Fails with `not_found` ("point.backend", or "point.unknown" for a point that is not
  /// declared), `already_exists` if the backend answers already, or `frozen`.
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
    // Text must outlive this call; ask() copies it before it asks again on this thread.
    thread_local Answer kept;
    kept = std::move(*answer);
    result = detail::point_argument(kept);
    return true;
  }

  std::string_view name_;
};

}  // namespace opmux
