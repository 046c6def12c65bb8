#pragma once

#include <memory>

#include "registry/record.hpp"

namespace opmux::dispatch {

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

}  // namespace opmux::dispatch
