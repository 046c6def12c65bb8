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
  int32_t max_threads = 0;  ///< 0: as many as the host's pool has
  opmux_parallel_for_fn parallel_for = nullptr;
  void* pool = nullptr;

  /// Returns the settings with the host's thread pool filled in where the caller lends no threads.
  /// `host` may be null.
  CallSettings with_threads_of(base::ThreadPool* host) const;
};

/// Converts arguments to the form of abi.h, with access flags from the schema.
void fill_args(const registry::Schema& schema, const registry::Arguments& arguments,
               opmux_arg* out);

/// Fills in an opmux_call except for workspace, prepared state and instance.
void fill_call(const registry::Schema& schema, const registry::Arguments& arguments,
               const CallSettings& settings, const opmux_arg* args, opmux_error* error,
               opmux_call& call);

/// Maps the return value of a kernel to an outcome; unknown numbers map to `failed`.
Code outcome_of(int32_t returned);

/// A call frame on the stack, for the slow path: first calls, nested calls and fallbacks.
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
