#include "conformance/device_side.hpp"

#include <bit>

namespace opmux::conformance {

Result<DeviceSide> DeviceSide::create(const Runtime& runtime, const std::string& backend) {
  Result<DeviceAccess> access = runtime.device_access(backend);
  if (!access) return access.error();
  Result<DeviceStream> stream = access->create_stream();
  if (!stream) return stream.error();
  return DeviceSide(*access, std::move(*stream));
}

Result<void*> DeviceSide::send(size_t tensor, const std::byte* from, uint64_t size) {
  if (memory_.size() <= tensor) memory_.resize(tensor + 1);
  DeviceMemory& memory = memory_[tensor];
  if (memory.size() < size) {
    Result<DeviceMemory> larger = access_.allocate(std::bit_ceil(size));
    if (!larger) return larger.error();
    memory = std::move(*larger);
  }
  if (Status status = access_.copy_in(memory, from, size, stream_.get()); !status.ok()) {
    return status;
  }
  return memory.handle();
}

Status DeviceSide::fetch(size_t tensor, std::byte* to, uint64_t size) {
  return access_.copy_out(to, memory_[tensor], size, stream_.get());
}

}  // namespace opmux::conformance
