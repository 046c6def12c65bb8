#pragma once

#include <string>

#include "health/breaker.hpp"
#include "registry/facts.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"

namespace opmux::health {

/// What a decision asks about a candidate's health, and what a call tells about its outcome.
/// Implementations are thread-safe.
class HealthView {
 public:
  virtual ~HealthView() = default;

  struct Answer {
    registry::Reason reason = registry::Reason::none;
    std::string text = {};
  };
  /// Whether a candidate may run for such a call; reason none = yes. Reads no clock unless `now`:
  /// then it answers for this very moment, otherwise for decisions that are kept.
  virtual Answer ask(const registry::ImplementationRecord& implementation,
                     const registry::Signature& signature, bool now) const = 0;
  /// Adds what ask() looks at to tell calls of this implementation apart.
  virtual void add_dependencies(const registry::ImplementationRecord&, const registry::Schema&,
                                registry::Dependencies&) const {}
  /// What explain says of a candidate that is accepted; empty if there is nothing to say.
  virtual std::string remark(const registry::ImplementationRecord&,
                             const registry::Signature&) const {
    return {};
  }

  /// Not null: each call of it asks enter() and tells every outcome.
  virtual Breaker* watch(const registry::ImplementationRecord&) const { return nullptr; }

  /// Told of every outcome that is not ok and of all outcomes of what is watched, once each, from
  /// the calling thread. Returns true if later decisions about everything on this implementation's
  /// type of device may differ: the engine then decides anew.
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
