#pragma once

#include <array>

#include "base/error_sink.hpp"
#include "base/thread_pool.hpp"
#include "registry/arguments.hpp"

namespace opmux::dispatch {

/// Options of one call beyond its arguments.
struct CallSettings {
  uint32_t tag = 0;
  void* stream = nullptr;
  int32_t max_threads = 0;  ///< 0: as many as the host has
  opmux_parallel_for_fn parallel_for = nullptr;
  void* pool = nullptr;

  /// With the host's threads, which may be none (null), where the caller lent no others.
  CallSettings with_threads_of(base::ThreadPool* host) const;
};

/// Writes arguments as abi.h has them, access flags from the schema included.
void fill_args(const registry::Schema& schema, const registry::Arguments& arguments,
               opmux_arg* out);

/// Everything of an opmux_call but workspace and prepared state.
void fill_call(const registry::Schema& schema, const registry::Arguments& arguments,
               const CallSettings& settings, const opmux_arg* args, opmux_error* error,
               opmux_call& call);

/// Maps what a kernel returned to an outcome class; numbers that mean nothing are failures.
Code outcome_of(int32_t returned);

/// A frame on the stack: for first calls, calls inside calls, and whoever stands in.
class StackFrame {
 public:
  StackFrame(const registry::Schema& schema, const registry::Arguments& arguments,
             const CallSettings& settings) {
    fill_args(schema, arguments, args_.data());
    fill_call(schema, arguments, settings, args_.data(), sink_.c(), call_);
  }
  StackFrame(const StackFrame&) = delete;
  StackFrame& operator=(const StackFrame&) = delete;

  opmux_call& call() { return call_; }
  const base::ErrorSink& error() const { return sink_; }

 private:
  std::array<opmux_arg, OPMUX_MAX_ARGS> args_;
  base::ErrorSink sink_;
  opmux_call call_{};
};

}  // namespace opmux::dispatch
