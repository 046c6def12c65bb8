#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/detail/function.hpp>
#include <opmux/operator.hpp>
#include <opmux/runtime.hpp>

namespace opmux {

namespace detail {

/// How a C++ parameter appears in a schema.
enum class ParameterKind : uint8_t { in, out, inout, integer, floating, boolean, string, int_list };

/// The kind of a C++ parameter type.
template <class T>
constexpr ParameterKind parameter_kind() {
  if constexpr (std::same_as<T, Out>) return ParameterKind::out;
  if constexpr (std::same_as<T, InOut>) return ParameterKind::inout;
  if constexpr (std::same_as<T, In>) return ParameterKind::in;
  if constexpr (std::same_as<T, bool>) return ParameterKind::boolean;
  if constexpr (std::integral<T>) return ParameterKind::integer;
  if constexpr (std::floating_point<T>) return ParameterKind::floating;
  if constexpr (std::same_as<T, std::string_view>) return ParameterKind::string;
  return ParameterKind::int_list;
}

/// Compares a C++ signature with the schema of an operator. Fails with `invalid_argument`,
/// "schema.signature", and spells out the first difference. A signature may have fewer parameters
/// if the remaining arguments have defaults.
OPMUX_API Status compare_signature(const Operator& op,
                                   const std::vector<ParameterKind>& parameters);

}  // namespace detail

template <class Signature>
class Op;

/// An operator with a C++ signature. The signature is compared with the schema once, at
/// construction, so that a mistake appears at startup and not in the first call. Parameters are In,
/// Out, InOut, integers, floating-point numbers, bool, std::string_view and lists of int64_t.
///
///   using opmux::In, opmux::Out, opmux::Status;
///   const opmux::Op<Status(Out, In, In, double)> rms_norm{runtime, "rms_norm"};
///   if (!rms_norm.status().ok()) std::cerr << rms_norm.status().to_string() << "\n";
///   float x[4] = {1, 2, 3, 4}, y[4], w[4] = {1, 1, 1, 1};
///   opmux::TensorView in(x, opmux::f32, {1, 4}), out(y, opmux::f32, {1, 4});
///   Status status = rms_norm(out, in, opmux::TensorView(w, opmux::f32, {4}), 1e-6);
///
/// Copyable; calls are safe from any thread. The runtime must outlive it.
template <class... Parameters>
class Op<Status(Parameters...)> {
 public:
  /// Looks up the operator and compares signatures. Does not throw: status() has the result.
  Op(Runtime& runtime, std::string_view name) {
    Result<Operator> found = runtime.op(name);
    status_ = found ? detail::compare_signature(*found, {detail::parameter_kind<Parameters>()...})
                    : found.error();
    if (found) op_ = *found;
  }

  /// Ok, `not_found` if there is no such operator, or `invalid_argument` ("schema.signature").
  const Status& status() const { return status_; }

  /// Calls the operator; returns status() without calling if that is not ok.
  Status operator()(Parameters... args) const {
    if (!status_.ok()) return status_;
    return (*op_)(args...);
  }

 private:
  Status status_;
  std::optional<Operator> op_;
};

namespace detail {

/// Argument i of a call as a parameter of a C++ function. Views are stored in `views`.
template <class T>
T parameter_of(const CallFrame& call, size_t i, TensorView* views) {
  if constexpr (std::derived_from<T, In>) {
    views[i] = call.tensor(i);
    return T(views[i]);
  } else if constexpr (std::same_as<T, bool>) {
    return call.boolean(i);
  } else if constexpr (std::integral<T>) {
    return static_cast<T>(call.i64(i));
  } else {
    static_assert(std::floating_point<T>, "parameters of a Dispatchable are tensors and numbers");
    return static_cast<T>(call.f64(i));
  }
}

/// Turns the Status of a body into an outcome and writes its message to the call.
OPMUX_API Outcome end_with(const CallFrame& call, const Status& status);

}  // namespace detail

template <class Signature>
class Dispatchable;

/// Turns a function of the program into an operator that others may implement faster. The function
/// becomes the reference implementation, `NAME/own.body`: it defines the meaning of the operator
/// and is the last candidate.
///
///   using opmux::In, opmux::Out, opmux::Status;
///   opmux::Dispatchable<Status(Out, In)> twice{
///       runtime, "twice(out Tensor y[N], Tensor x[N])", +[](Out y, In x) -> Status {
///         for (int64_t i = 0; i < x->dim(0); ++i) {
///           static_cast<float*>(y->data())[i] = 2 * static_cast<float*>(x->data())[i];
///         }
///         return {};
///       }};
///   float x[3] = {1, 2, 3}, y[3];
///   Status status = twice(opmux::TensorView(y, opmux::f32, {3}),
///                         opmux::TensorView(x, opmux::f32, {3}));
///
/// A vendor then registers `twice/acme.fast` by Runtime::implement() or in a plugin, and policies
/// apply to both. With OPMUX_DISABLE set, calls run the function.
///
/// Parameters are In, Out, InOut, integers, floating-point numbers and bool. The function pointer
/// is kept until this object is destroyed, which withdraws the implementation without waiting for
/// calls that are inside. Calls are safe from any thread if the function is. Neither copyable nor,
/// once called from several threads, to be moved. The runtime must outlive it.
template <class... Parameters>
class Dispatchable<Status(Parameters...)> {
 public:
  /// Defines the operator and registers `body`. Does not throw: status() has the result.
  Dispatchable(Runtime& runtime, std::string_view schema, Status (*body)(Parameters...)) {
    status_ = runtime.define(schema);
    if (!status_.ok()) return;
    const std::string name(schema.substr(0, schema.find('(')));
    Result<Registration> own = runtime.implement(
        {.id = name + "/own.body", .kind = Kind::reference, .run = [body](CallFrame& call) {
           return run(call, body, std::index_sequence_for<Parameters...>{});
         }});
    if (!own) {
      status_ = own.error();
      return;
    }
    own_ = std::move(*own);
    op_.emplace(runtime, name);
    status_ = op_->status();
  }

  /// Ok, or why the object cannot be called: Runtime::define() or Runtime::implement() failed, or
  /// the C++ signature does not fit the schema ("schema.signature").
  const Status& status() const { return status_; }

  /// Runs the best implementation, which may be the function itself. Fails as Operator::operator()
  /// does; returns status() without calling if that is not ok.
  Status operator()(Parameters... args) const {
    if (!status_.ok()) return status_;
    return (*op_)(args...);
  }

 private:
  template <size_t... I>
  static Outcome run(const CallFrame& call, Status (*body)(Parameters...),
                     std::index_sequence<I...>) {
    TensorView views[sizeof...(I) + 1];
    return detail::end_with(call, body(detail::parameter_of<Parameters>(call, I, views)...));
  }

  Status status_;
  Registration own_;
  std::optional<Op<Status(Parameters...)>> op_;
};

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
/// Asks a point, declaring it if needed. Fails with `declined` ("point.no_answer"), and as
/// explain_point() does.
OPMUX_API Status find_answer(Runtime& runtime, std::string_view signature, const opmux_arg* args,
                             uint32_t count, opmux_arg& answer);
/// The same; returns whether a backend answered.
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
  /// other types, which an event reports ("point.signature"). An answer of another type is skipped
  /// with an event ("point.answer"). Takes microseconds: ask once and keep the answer, not in a hot
  /// loop.
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
