#include "health/device_health.hpp"

#include <algorithm>

namespace opmux::health {

uint64_t DeviceHealth::word_of(Device device) {
  return static_cast<uint64_t>(static_cast<uint32_t>(device.type)) << 32 |
         static_cast<uint32_t>(device.id);
}

bool DeviceHealth::fatal(Device device) const {
  for (const auto& lost : lost_) {
    const uint64_t word = lost.load(std::memory_order_acquire);
    if (word == 0) return false;
    if (word == word_of(device)) return true;
  }
  return false;
}

std::string DeviceHealth::refusal(Device device) const {
  if (!fatal(device)) return {};
  return name_of(device) + " was lost; restart the process to use it again";
}

bool DeviceHealth::on_outcome(Device device, Code outcome) {
  if (outcome != Code::device_lost || device.type == OPMUX_DEVICE_CPU || fatal(device))
    return false;
  for (auto& lost : lost_) {
    uint64_t free = 0;
    if (lost.compare_exchange_strong(free, word_of(device), std::memory_order_acq_rel)) return true;
    if (free == word_of(device)) return false;
  }
  return false;
}

void DeviceHealth::mark(Device device, int32_t code, std::vector<std::string> suspects) {
  marks_.with([&](std::vector<DeviceError>& marks) {
    auto at = std::ranges::find(marks, device, &DeviceError::device);
    if (at == marks.end()) at = marks.insert(at, {.device = device});
    at->code = code;
    at->suspects = std::move(suspects);
    ++at->count;
  });
}

std::vector<DeviceError> DeviceHealth::marks() {
  return marks_.with([](const std::vector<DeviceError>& marks) { return marks; });
}

std::vector<Device> DeviceHealth::fatal_devices() const {
  std::vector<Device> devices;
  for (const auto& lost : lost_) {
    const uint64_t word = lost.load(std::memory_order_acquire);
    if (word == 0) break;
    devices.push_back({static_cast<int32_t>(word >> 32), static_cast<int32_t>(word)});
  }
  return devices;
}

}  // namespace opmux::health
