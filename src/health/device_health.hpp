#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <opmux/device.hpp>

#include "base/locks.hpp"

namespace opmux::health {

/// Devices that were lost. A lost device is not used again for the life of the process. The CPU
/// cannot be lost: `device_lost` from a CPU implementation counts as a failure.
class DeviceHealth {
 public:
  /// Why no call may run on a device; empty if calls may run.
  std::string refusal(Device device) const;
  /// Records the outcome of a call. Returns true if the device was lost by it and was not known to
  /// be lost.
  bool on_outcome(Device device, Code outcome);

  /// Records an error that the plugin reported asynchronously. It blocks no calls: if the device is
  /// lost, the outcome of the next call says so.
  void mark(Device device, int32_t code, std::vector<std::string> suspects);
  std::vector<DeviceError> marks();

  bool fatal(Device device) const;
  std::vector<Device> fatal_devices() const;

 private:
  static constexpr size_t kMaxDevices = 64;
  static uint64_t word_of(Device device);
  std::array<std::atomic<uint64_t>, kMaxDevices> lost_{};  ///< 0 = unused entry
  base::ForkGuarded<std::vector<DeviceError>> marks_;
};

}  // namespace opmux::health
