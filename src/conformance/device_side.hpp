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

/// Memory and a stream of a device, for the tensors of a call. Not thread-safe.
class DeviceSide {
 public:
  /// On the first device of an implementation's backend. Fails if that gives no stream.
  static Result<DeviceSide> create(const Runtime& runtime, const std::string& backend);

  void* stream() const { return stream_.get(); }
  Device device() const { return stream_.device(); }
  /// Puts `size` bytes, in the order of the stream, into memory for one tensor, made or made larger
  /// if needed; returns its handle.
  Result<void*> send(size_t tensor, const std::byte* from, uint64_t size);
  /// Gets them back, in the order of the stream.
  Status fetch(size_t tensor, std::byte* to, uint64_t size);
  Status synchronize() const { return stream_.synchronize(); }

 private:
  DeviceSide(DeviceAccess access, DeviceStream stream)
      : access_(std::move(access)), stream_(std::move(stream)) {}

  DeviceAccess access_;
  std::vector<DeviceMemory> memory_;
  DeviceStream stream_;  ///< goes first: it waits for what uses the memory
};

/// Where one caller keeps the tensors of its calls.
struct Place {
  Arenas arenas;
  std::optional<DeviceSide> side;  ///< of an implementation whose memory the CPU cannot read
};

}  // namespace opmux::conformance
