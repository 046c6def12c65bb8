#pragma once

#include <memory>

#include "registry/record.hpp"

namespace opmux::dispatch {

/// Stands between the plans of an implementation and its kernel, and looks at some of its calls.
/// Thread-safe.
class CallTap {
 public:
  explicit CallTap(registry::RunEntry entry) : entry_(entry) {}
  virtual ~CallTap() = default;
  CallTap(const CallTap&) = delete;
  CallTap& operator=(const CallTap&) = delete;

  /// What runs in the place of the implementation's own entry.
  const registry::RunEntry& entry() const { return entry_; }
  /// Told of calls that run without it because their tensors are transformed.
  virtual void pass_transformed() noexcept = 0;

 private:
  registry::RunEntry entry_;
};

/// Whose calls are looked at. Thread-safe.
class TapView {
 public:
  virtual ~TapView() = default;
  /// Null if nobody looks at the calls of this one.
  virtual std::shared_ptr<CallTap> tap_of(
      const registry::OperatorRecord& op,
      const registry::ImplementationPtr& implementation) const = 0;
  /// Changes when tap_of() may answer otherwise.
  virtual uint64_t version() const = 0;
};

}  // namespace opmux::dispatch
