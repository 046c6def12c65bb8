/// What run(), plan() and workspace() are given. Part of <opmux/plugin.hpp>.
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

/// One call: its arguments by position in the schema, and what the host lends to it.
class Call {
 public:
  explicit Call(const opmux_call& call) : call_(&call) {}

  const opmux_call& c() const { return *call_; }
  opmux_error* error() const { return call_->error; }
  bool present(uint32_t i) const { return tag(i) != OPMUX_ARG_NONE; }
  bool holds_tensor(uint32_t i) const { return tag(i) == OPMUX_ARG_TENSOR; }
  /// Throws, and so fails the call, if there is no tensor in this place; without exceptions in the
  /// language, it is then an absent one.
  TensorArg tensor(uint32_t i) const {
#if defined(__cpp_exceptions)
    if (tag(i) != OPMUX_ARG_TENSOR) throw std::invalid_argument("a required tensor is missing");
#else
    if (tag(i) != OPMUX_ARG_TENSOR) return {};
#endif
    return TensorArg{arg(i).value.tensor};
  }
  TensorArg optional_tensor(uint32_t i) const { return present(i) ? tensor(i) : TensorArg{}; }
  double f64(uint32_t i, double if_absent = 0) const {
    return present(i) ? arg(i).value.f64 : if_absent;
  }
  /// int, or the position of an enum's word.
  int64_t i64(uint32_t i, int64_t if_absent = 0) const {
    return present(i) ? arg(i).value.i64 : if_absent;
  }
  bool boolean(uint32_t i, bool if_absent = false) const { return i64(i, if_absent) != 0; }

  void* stream() const { return call_->stream; }
  void* workspace() const { return call_->workspace; }
  /// What plan() made, or null.
  template <class T>
  T* prepared() const {
    return call_->prepared ? static_cast<T*>(shared(call_->prepared).get()) : nullptr;
  }
  /// What create() made, or null.
  template <class T>
  T* instance() const {
    return call_->instance ? static_cast<T*>(shared(call_->instance).get()) : nullptr;
  }
  static std::shared_ptr<void>& shared(void* handle) {
    return *static_cast<std::shared_ptr<void>*>(handle);
  }

  bool parallel() const { return call_->max_threads > 1 && call_->parallel_for; }
  /// body(i) for each i in [0, count): on the engine's threads if it lent more than one, else here.
  /// The first exception that a body throws is thrown again from here.
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
