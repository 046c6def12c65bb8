#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <opmux/device.hpp>

#include "base/fork_guarded.hpp"

namespace opmux::health {

/// Devices that were lost stay lost for the life of the process: nothing is run on them again. The
/// CPU cannot be lost; a CPU implementation that says so only failed.
class DeviceHealth {
 public:
  /// Why nothing may run on a device; empty if it may.
  std::string refusal(Device device) const;
  /// Whether an outcome of a call on this device is news about it.
  bool on_outcome(Device device, Code outcome);

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
