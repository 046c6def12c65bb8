#pragma once

#include <string_view>
#include <utility>

#include <opmux/runtime.hpp>
#include <opmux/typed_op.hpp>

namespace opmux {

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

}  // namespace opmux
