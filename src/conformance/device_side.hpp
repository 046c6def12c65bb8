#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <opmux/device.hpp>
#include <opmux/runtime.hpp>

#include "conformance/arena.hpp"

namespace opmux::conformance {

/// Device memory and a stream for the tensors of a call. Not thread-safe.
class DeviceSide {
 public:
  /// Uses the first device of a backend. Fails if a stream cannot be created.
  static Result<DeviceSide> create(const Runtime& runtime, const std::string& backend);

  void* stream() const { return stream_.get(); }
  Device device() const { return stream_.device(); }
  /// Copies `size` bytes to the memory of one tensor, in stream order, and returns its handle.
  /// Allocates or enlarges the memory if needed.
  Result<void*> send(size_t tensor, const std::byte* from, uint64_t size);
  /// Copies a tensor's bytes back, in stream order.
  Status fetch(size_t tensor, std::byte* to, uint64_t size);
  Status synchronize() const { return stream_.synchronize(); }

 private:
  DeviceSide(DeviceAccess access, DeviceStream stream)
      : access_(std::move(access)), stream_(std::move(stream)) {}

  DeviceAccess access_;
  std::vector<DeviceMemory> memory_;
  DeviceStream stream_;  ///< destroyed first, because it waits for work that uses memory_
};

/// Memory for the tensors of one calling thread.
struct Place {
  Arenas arenas;
  std::optional<DeviceSide> side;  ///< set if the CPU cannot read the implementation's memory
};

}  // namespace opmux::conformance
