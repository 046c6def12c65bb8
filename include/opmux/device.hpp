#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <opmux/export.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

/// Devices with memory and queues of their own, reached through the backend that brings them.
///
///     opmux::DeviceAccess opencl = runtime.device_access("opencl").value();
///     opmux::DeviceMemory x = opencl.allocate(bytes).value();
///     opmux::DeviceStream stream = opencl.create_stream().value();
///     opencl.copy_in(x, host, bytes, stream.get());
///     rms_norm.with({.stream = stream.get()})(y.view(f32, {2, 8}), x.view(f32, {2, 8}));
///     stream.synchronize();
namespace opmux {

namespace registry {
class Backend;
}

/// What a device said about calls that had already returned.
struct DeviceError {
  Device device;
  int32_t code = 0;    ///< of the last error, as its driver numbers them
  uint64_t count = 0;  ///< how many there were
  /// Implementations that were put last into the stream of the last error, the latest first. Any of
  /// them may have caused it; nothing is counted against them.
  std::vector<std::string> suspects = {};
};

/// Memory on a device, given back when it goes. Move-only.
class [[nodiscard]] DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept { return swap(other), *this; }
  OPMUX_API ~DeviceMemory();

  /// What a tensor in it has as its data pointer.
  void* handle() const noexcept { return handle_; }
  uint64_t size() const noexcept { return size_; }
  Device device() const noexcept { return device_; }
  /// A row-major tensor at its beginning.
  TensorView view(DType dtype, std::initializer_list<int64_t> shape) const {
    return {handle_, dtype, shape, device_};
  }

 private:
  friend class DeviceAccess;
  void swap(DeviceMemory& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(size_, other.size_);
  }
  std::shared_ptr<const registry::Backend> backend_;
  Device device_;
  void* handle_ = nullptr;
  uint64_t size_ = 0;
};

/// A queue of a device: what is put into it happens in that order. Move-only; when it goes, it
/// waits for what is in it.
class [[nodiscard]] DeviceStream {
 public:
  DeviceStream() = default;
  DeviceStream(DeviceStream&& other) noexcept { swap(other); }
  DeviceStream& operator=(DeviceStream&& other) noexcept { return swap(other), *this; }
  OPMUX_API ~DeviceStream();

  /// What a call takes as CallOptions::stream.
  void* get() const noexcept { return stream_; }
  Device device() const noexcept { return device_; }
  /// Waits until everything in it is done; fails with the first outcome that was not ok.
  OPMUX_API Status synchronize() const;

 private:
  friend class DeviceAccess;
  void swap(DeviceStream& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
  }
  std::shared_ptr<const registry::Backend> backend_;
  Device device_;
  void* stream_ = nullptr;
};

/// How memory and streams of one backend's devices are reached. Cheap to copy, safe from any
/// thread. A null stream is the device's own.
class DeviceAccess {
 public:
  /// How many devices there are: their ids are 0, 1 ...
  OPMUX_API int32_t count() const;
  /// Fails with `resource` if there is not so much.
  OPMUX_API Result<DeviceMemory> allocate(uint64_t size, int32_t id = 0) const;
  OPMUX_API Result<DeviceStream> create_stream(int32_t id = 0) const;
  /// Copies to the beginning of the memory and from it, in the order of the stream: what is on the
  /// CPU must stay as it is until the stream was synchronized.
  OPMUX_API Status copy_in(const DeviceMemory& to, const void* from, uint64_t size,
                           void* stream = nullptr) const;
  OPMUX_API Status copy_out(void* to, const DeviceMemory& from, uint64_t size,
                            void* stream = nullptr) const;
  OPMUX_API Status synchronize(void* stream = nullptr, int32_t id = 0) const;

  explicit DeviceAccess(std::shared_ptr<const registry::Backend> backend)
      : backend_(std::move(backend)) {}

 private:
  Device device(int32_t id) const;
  std::shared_ptr<const registry::Backend> backend_;
};

}  // namespace opmux
