/// The argument of run(), plan() and workspace(). Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include <opmux/plugin/tensor_arg.hpp>

namespace opmux::plugin {

/// One call: arguments by position in the schema, and resources that the host lends to it.
///
///   namespace op = opmux::plugin;
///   auto run = [](const op::Call& call) {
///     const op::TensorArg y = call.tensor(0), x = call.tensor(1);
///     const double scale = call.f64(2, 1.0);
///     call.for_each(x.dim(0), [&](int64_t row) {
///       for (int64_t i = 0; i < x.dim(1); ++i) {
///         y.data<float>()[row * y.stride(0) + i] =
///             static_cast<float>(scale) * x.data<float>()[row * x.stride(0) + i];
///       }
///     });
///   };
///
/// Everything is borrowed: do not keep pointers after the function returned.
class Call {
 public:
  explicit Call(const opmux_call& call) : call_(&call) {}

  /// The C struct.
  const opmux_call& c() const { return *call_; }
  /// Destination for decline(), invalid() and fail(); may be null, which they accept.
  opmux_error* error() const { return call_->error; }
  /// Whether argument i is given; false beyond the last argument.
  bool present(uint32_t i) const { return tag(i) != OPMUX_ARG_NONE; }
  /// Whether argument i is a tensor that is given.
  bool holds_tensor(uint32_t i) const { return tag(i) == OPMUX_ARG_TENSOR; }
  /// Tensor argument i. Throws if it is absent, so that the call fails; without exceptions in the
  /// language it returns an absent TensorArg instead.
  TensorArg tensor(uint32_t i) const {
#if defined(__cpp_exceptions)
    if (tag(i) != OPMUX_ARG_TENSOR) throw std::invalid_argument("a required tensor is missing");
#else
    if (tag(i) != OPMUX_ARG_TENSOR) return {};
#endif
    return TensorArg{arg(i).value.tensor};
  }
  /// Tensor argument i, or an absent TensorArg.
  TensorArg optional_tensor(uint32_t i) const { return present(i) ? tensor(i) : TensorArg{}; }
  /// Float argument i, or `if_absent`.
  double f64(uint32_t i, double if_absent = 0) const {
    return present(i) ? arg(i).value.f64 : if_absent;
  }
  /// Int argument i, or the position of the word of an enum, or `if_absent`.
  int64_t i64(uint32_t i, int64_t if_absent = 0) const {
    return present(i) ? arg(i).value.i64 : if_absent;
  }
  /// Bool argument i, or `if_absent`.
  bool boolean(uint32_t i, bool if_absent = false) const { return i64(i, if_absent) != 0; }

  /// Queue of the device to enqueue on; null is its default stream.
  void* stream() const { return call_->stream; }
  /// Scratch memory of the size that workspace() returned, aligned to 64 bytes; uninitialised.
  void* workspace() const { return call_->workspace; }
  /// The object that plan() made for arguments like these, or null. T must be its type.
  template <class T>
  T* prepared() const {
    return call_->prepared ? static_cast<T*>(shared(call_->prepared).get()) : nullptr;
  }
  /// The object that create() made for a packed constant, or null. T must be its type.
  template <class T>
  T* instance() const {
    return call_->instance ? static_cast<T*>(shared(call_->instance).get()) : nullptr;
  }
  /// For Impl: the object behind a handle.
  static std::shared_ptr<void>& shared(void* handle) {
    return *static_cast<std::shared_ptr<void>*>(handle);
  }

  /// Whether for_each() uses more than one thread.
  bool parallel() const { return call_->max_threads > 1 && call_->parallel_for; }
  /// Runs body(i) for each i in [0, count): on threads of the host if it lent more than one, else
  /// on this thread. Returns when all have run. Rethrows the first exception of a body; the other
  /// bodies still run.
  template <class Body>
  void for_each(int64_t count, Body&& body) const {
    if (!parallel() || count < 2) {
      for (int64_t i = 0; i < count; ++i) body(i);
      return;
    }
    Shared<std::remove_reference_t<Body>> state{&body, {}, nullptr};
    call_->parallel_for(call_->pool, count, &state, [](void* context, int64_t i) {
      auto& s = *static_cast<Shared<std::remove_reference_t<Body>>*>(context);
#if defined(__cpp_exceptions)
      try {
        (*s.body)(i);
      } catch (...) {
        if (!s.failed.test_and_set()) s.thrown = std::current_exception();
      }
#else
      (*s.body)(i);
#endif
    });
    if (state.thrown) std::rethrow_exception(state.thrown);
  }

 private:
  template <class Body>
  struct Shared {
    Body* body;
    std::atomic_flag failed;
    std::exception_ptr thrown;
  };
  const opmux_arg& arg(uint32_t i) const {
    const char* first = reinterpret_cast<const char*>(call_->args);
    return *reinterpret_cast<const opmux_arg*>(first + size_t{i} * call_->arg_stride);
  }
  uint32_t tag(uint32_t i) const { return i < call_->arg_count ? arg(i).tag : OPMUX_ARG_NONE; }

  const opmux_call* call_;
};

}  // namespace opmux::plugin
