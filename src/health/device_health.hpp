#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <opmux/device.hpp>

#include "base/fork_guarded.hpp"
#include "health/health_view.hpp"

namespace opmux::health {

/// Devices that were lost stay lost for the life of the process: nothing is run on them again. The
/// CPU cannot be lost; a CPU implementation that says so only failed.
class DeviceHealth final : public HealthView {
 public:
  Answer ask(const registry::ImplementationRecord& implementation, Device device) const override;
  bool on_outcome(const registry::ImplementationRecord& implementation, Device device,
                  Code outcome) override;

  /// Notes an error that a device reported by itself. Nothing is refused for it: a device that is
  /// gone says so by the outcome of the next call.
  void mark(Device device, int32_t code, std::vector<std::string> suspects);
  std::vector<DeviceError> marks();

  bool fatal(Device device) const;
  std::vector<Device> fatal_devices() const;

 private:
  static constexpr size_t kMaxDevices = 64;
  static uint64_t word_of(Device device);
  std::array<std::atomic<uint64_t>, kMaxDevices> lost_{};  ///< 0 = free place
  base::ForkGuarded<std::vector<DeviceError>> marks_;
};

}  // namespace opmux::health
