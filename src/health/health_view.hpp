#pragma once

#include <string>

#include "health/breaker.hpp"
#include "health/breaker_registry.hpp"
#include "health/device_health.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"
#include "schema/facts.hpp"

namespace opmux::health {

/// The interface through which decisions query a candidate's health and calls report outcomes.
/// Implementations are thread-safe.
class HealthView {
 public:
  virtual ~HealthView() = default;

  /// `text` explains the reason.
  struct Answer {
    registry::Reason reason = registry::Reason::none;
    std::string text = {};
  };
  /// Whether a candidate may run for such a call; Reason::none = yes. With `now` it answers for the
  /// current moment and reads the clock; otherwise it answers for decisions that are cached.
  virtual Answer ask(const registry::ImplementationRecord& implementation,
                     const schema::Signature& signature, bool now) const = 0;
  /// Adds the facts by which ask() distinguishes calls of this implementation.
  virtual void add_dependencies(const registry::ImplementationRecord&, const schema::Schema&,
                                schema::Dependencies&) const {}
  /// The remark that explain prints for an accepted candidate; may be empty.
  virtual std::string remark(const registry::ImplementationRecord&,
                             const schema::Signature&) const {
    return {};
  }

  /// Null unless the implementation is armed. If not null, each call uses the breaker's enter() and
  /// reports every outcome.
  virtual Breaker* watch(const registry::ImplementationRecord&) const { return nullptr; }

  /// The breaker whose slow_call_ns() limits the duration of calls of this implementation; null if
  /// they are not timed. It outlives all decisions.
  virtual const Breaker* timer(const registry::ImplementationRecord&) const { return nullptr; }

  /// Called once per call on the calling thread, for every outcome that is not ok, for calls that
  /// were too slow, and for all outcomes of watched implementations. Returns true if later
  /// decisions about all implementations of this device type may differ; the engine then recomputes
  /// them.
  virtual bool on_outcome(const registry::ImplementationRecord& implementation,
                          const schema::Signature& signature, Code outcome, const Pass& pass) = 0;
};

/// The device of a call: that of its first tensor.
inline Device device_of(const schema::Arguments& arguments) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] == ArgTag::tensor && arguments.values[i].tensor->present())
      return arguments.values[i].tensor->device();
  }
  return {};
}

/// Health of devices and implementations, as decisions and calls see it.
class Health final : public HealthView {
 public:
  Health(BreakerHost& host, const base::Clock& clock, uint64_t seed) : board_(host, clock, seed) {}

  Answer ask(const registry::ImplementationRecord& implementation,
             const schema::Signature& signature, bool now) const override;
  void add_dependencies(const registry::ImplementationRecord& implementation,
                        const schema::Schema& schema,
                        schema::Dependencies& dependencies) const override;
  std::string remark(const registry::ImplementationRecord& implementation,
                     const schema::Signature& signature) const override;
  Breaker* watch(const registry::ImplementationRecord& implementation) const override;
  const Breaker* timer(const registry::ImplementationRecord& implementation) const override;
  bool on_outcome(const registry::ImplementationRecord& implementation,
                  const schema::Signature& signature, Code outcome, const Pass& pass) override;

  DeviceHealth& devices() { return devices_; }
  BreakerRegistry& breakers() { return board_; }

 private:
  DeviceHealth devices_;
  BreakerRegistry board_;
};

/// "open: circuit breaker opened 3 times, next probe in 12.5 s".
std::string describe(const BreakerCell& cell, uint64_t now_ns);

}  // namespace opmux::health
