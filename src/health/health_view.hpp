#pragma once

#include <string>

#include "registry/reason.hpp"
#include "registry/record.hpp"

namespace opmux::health {

/// What a decision asks about a candidate's health, and what a call tells about its outcome.
/// Implementations are thread-safe and read no clock.
class HealthView {
 public:
  virtual ~HealthView() = default;

  struct Answer {
    registry::Reason reason = registry::Reason::none;
    std::string text;
  };
  /// Whether a candidate may run on this device now; reason none = yes.
  virtual Answer ask(const registry::ImplementationRecord& implementation, Device device) const = 0;

  /// Told of every outcome that is not ok, once each, from the calling thread. Returns true if
  /// later decisions about this implementation's operator may differ: the engine then decides anew.
  virtual bool on_outcome(const registry::ImplementationRecord& implementation, Device device,
                          Code outcome) = 0;
};

}  // namespace opmux::health
