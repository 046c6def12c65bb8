#pragma once

#include <string>

#include "health/breaker.hpp"
#include "registry/facts.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"

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
                     const registry::Signature& signature, bool now) const = 0;
  /// Adds the facts by which ask() distinguishes calls of this implementation.
  virtual void add_dependencies(const registry::ImplementationRecord&, const registry::Schema&,
                                registry::Dependencies&) const {}
  /// The remark that explain prints for an accepted candidate; may be empty.
  virtual std::string remark(const registry::ImplementationRecord&,
                             const registry::Signature&) const {
    return {};
  }

  /// Null unless the implementation is armed. If not null, each call uses the breaker's enter() and
  /// reports every outcome.
  virtual Breaker* watch(const registry::ImplementationRecord&) const { return nullptr; }

  /// Called once per call on the calling thread, for every outcome that is not ok and for all
  /// outcomes of watched implementations. Returns true if later decisions about all implementations
  /// of this device type may differ; the engine then recomputes them.
  virtual bool on_outcome(const registry::ImplementationRecord& implementation,
                          const registry::Signature& signature, Code outcome, const Pass& pass) = 0;
};

/// The device of a call: that of its first tensor.
inline Device device_of(const registry::Arguments& arguments) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] == ArgTag::tensor && arguments.values[i].tensor->present())
      return arguments.values[i].tensor->device();
  }
  return {};
}

}  // namespace opmux::health
