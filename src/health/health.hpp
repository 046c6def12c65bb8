#pragma once

#include "health/breaker_board.hpp"
#include "health/device_health.hpp"
#include "health/health_view.hpp"

namespace opmux::health {

/// Health of devices and implementations, as decisions and calls see it.
class Health final : public HealthView {
 public:
  explicit Health(BreakerBoard::Hooks hooks) : board_(std::move(hooks)) {}

  Answer ask(const registry::ImplementationRecord& implementation,
             const registry::Signature& signature, bool now) const override;
  void add_dependencies(const registry::ImplementationRecord& implementation,
                        const registry::Schema& schema,
                        registry::Dependencies& dependencies) const override;
  std::string remark(const registry::ImplementationRecord& implementation,
                     const registry::Signature& signature) const override;
  Breaker* watch(const registry::ImplementationRecord& implementation) const override;
  bool on_outcome(const registry::ImplementationRecord& implementation,
                  const registry::Signature& signature, Code outcome, const Pass& pass) override;

  DeviceHealth& devices() { return devices_; }
  BreakerBoard& breakers() { return board_; }

 private:
  DeviceHealth devices_;
  BreakerBoard board_;
};

/// "open: circuit breaker opened 3 times, next probe in 12.5 s".
std::string describe(const BreakerCell& cell, uint64_t now_ns);

}  // namespace opmux::health
