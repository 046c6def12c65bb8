#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/operator.hpp>
#include <opmux/runtime.hpp>

namespace opmux {

namespace detail {

/// What a C++ parameter stands for in a schema.
enum class ParameterKind : uint8_t { in, out, inout, integer, floating, boolean, string, int_list };

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

/// Compares a C++ signature with an operator's schema; spells out the first difference. Fewer
/// parameters than arguments are fine where the rest has defaults.
OPMUX_API Status compare_signature(const Operator& op,
                                   const std::vector<ParameterKind>& parameters);

}  // namespace detail

template <class Signature>
class Op;

/// An operator with a C++ signature: Op<Status(Out, In, In, double)>. The signature is compared
/// with the schema once, at construction; if it does not fit, status() and every call say so.
template <class... Parameters>
class Op<Status(Parameters...)> {
 public:
  Op(Runtime& runtime, std::string_view name) {
    Result<Operator> found = runtime.op(name);
    status_ = found ? detail::compare_signature(*found, {detail::parameter_kind<Parameters>()...})
                    : found.error();
    if (found) op_ = *found;
  }

  const Status& status() const { return status_; }

  Status operator()(Parameters... args) const {
    if (!status_.ok()) return status_;
    return (*op_)(args...);
  }

 private:
  Status status_;
  std::optional<Operator> op_;
};

}  // namespace opmux
