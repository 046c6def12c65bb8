#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.hpp"
#include "base/thread_pool.hpp"
#include "registry/record.hpp"
#include "schema/arguments.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

/// Describes a call that returned `failed`, for a FailureObserver.
struct FailedCall {
  const registry::ImplementationRecord& implementation;
  const schema::Signature& signature;
  int32_t max_threads = 0;
  std::string_view says;  ///< error text of the implementation
};

/// Receives the calls that returned `failed`. Thread-safe.
class FailureObserver {
 public:
  virtual ~FailureObserver() = default;
  /// Called on the calling thread before any fallback runs, while the arguments are valid.
  virtual void note(const FailedCall& call) = 0;
};

class OpaqueRunner;

/// Wraps the kernel of an implementation to sample some of its calls (shadow check). Plans call the
/// tap's entry instead of the kernel. Thread-safe.
class CallTap {
 public:
  explicit CallTap(registry::RunEntry entry) : entry_(entry) {}
  virtual ~CallTap() = default;
  CallTap(const CallTap&) = delete;
  CallTap& operator=(const CallTap&) = delete;

  /// The entry that plans call in place of the implementation's.
  const registry::RunEntry& entry() const { return entry_; }
  /// Called for each call that bypasses the tap because its tensors are transformed.
  virtual void pass_transformed() noexcept = 0;
  /// Called on the calling thread after an implementation of an opaque operator completed a call.
  virtual void pass_opaque(const schema::Signature& signature, OpaqueRunner& runner) = 0;

 private:
  registry::RunEntry entry_;
};

/// Says which implementations have a tap. Thread-safe.
class TapView {
 public:
  virtual ~TapView() = default;
  /// Returns the tap of an implementation; null if its calls are not sampled.
  virtual std::shared_ptr<CallTap> tap_of(
      const registry::OperatorRecord& op,
      const registry::ImplementationPtr& implementation) const = 0;
  /// Changes whenever results of tap_of() may change.
  virtual uint64_t version() const = 0;
};

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

/// The number of threads of a call whose caller states none and lends none. `host` may be null.
int32_t default_threads(const base::ThreadPool* host);

/// Converts arguments to the form of abi.h, with access flags from the schema.
void fill_args(const schema::Schema& schema, const schema::Arguments& arguments, opmux_arg* out);

/// Fills in an opmux_call except for workspace, prepared state and instance.
void fill_call(const schema::Schema& schema, const schema::Arguments& arguments,
               const CallSettings& settings, const opmux_arg* args, opmux_error* error,
               opmux_call& call);

/// Maps the return value of a kernel to an outcome; unknown numbers map to `failed`.
Code outcome_of(int32_t returned);

/// A call frame on the stack, for the slow path: first calls, some nested calls and fallbacks.
class StackFrame {
 public:
  StackFrame(const schema::Schema& schema, const schema::Arguments& arguments,
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
