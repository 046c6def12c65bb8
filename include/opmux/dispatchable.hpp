#pragma once

#include <string_view>
#include <utility>

#include <opmux/runtime.hpp>
#include <opmux/typed_op.hpp>

namespace opmux {

namespace detail {

/// Argument i of a kernel's frame as a parameter of a C++ function. Views live in `views`.
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
    static_assert(std::floating_point<T>, "a dispatchable takes tensors and numbers");
    return static_cast<T>(call.f64(i));
  }
}

/// Turns a body's Status into an outcome with its sentence.
OPMUX_API Outcome end_with(const CallFrame& call, const Status& status);

}  // namespace detail

template <class Signature>
class Dispatchable;

/// A function of the program whose body is the meaning of an operator and its last candidate
/// (`op/own.body`): other implementations may replace it. The body is borrowed for the object's
/// life.
///
///     opmux::Dispatchable<Status(Out, In, In)> chunk_scan{
///         runtime, "chunk_scan(out Tensor y[*], Tensor q[*], Tensor k[*])", &own_chunk_scan};
template <class... Parameters>
class Dispatchable<Status(Parameters...)> {
 public:
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

  /// Why it cannot be called, if so.
  const Status& status() const { return status_; }

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

}  // namespace opmux
