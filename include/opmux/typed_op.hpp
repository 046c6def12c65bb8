#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace opmux
