#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

/// Memory and queues of devices whose memory the CPU cannot access, reached through the backend
/// that drives the device.
///
///   opmux::Result<opmux::DeviceAccess> found = runtime.plugins().device_access("opencl");
///   if (found) {
///     float host[16] = {};
///     opmux::DeviceAccess opencl = *found;
///     opmux::DeviceMemory x = opencl.allocate(sizeof host).value();
///     opmux::DeviceMemory y = opencl.allocate(sizeof host).value();
///     opmux::DeviceStream stream = opencl.create_stream().value();
///     opmux::Status status = opencl.copy_in(x, host, sizeof host, stream.get());
///     opmux::Operator rms_norm = runtime.op("rms_norm").value();
///     if (status.ok()) {
///       status = rms_norm.with({.stream = stream.get()})(y.view(opmux::f32, {2, 8}),
///                                                        x.view(opmux::f32, {2, 8}));
///     }
///     if (status.ok()) status = opencl.copy_out(host, y, sizeof host, stream.get());
///     if (status.ok()) status = stream.synchronize();
///   }
///
/// Objects keep the backend loaded. They must be destroyed before the runtime.
namespace opmux {

namespace registry {
class Backend;
}

/// Errors that a device reported after the calls that caused them had returned.
struct DeviceError {
  Device device;
  int32_t code = 0;    ///< Of the last error, as its driver numbers them.
  uint64_t count = 0;  ///< Number of errors so far.
  /// Implementations that were last enqueued on the stream of the last error, newest first. Any of
  /// them may have caused it, so none is counted as failed.
  std::vector<std::string> suspects = {};
};

/// Owns a block of device memory and frees it on destruction. Work that uses it must have finished:
/// synchronize first. Move-only; a default-constructed object is empty.
class [[nodiscard]] DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept { return swap(other), *this; }
  OPMUX_API ~DeviceMemory();

  /// The data pointer of tensors in this memory: an address or a handle such as a cl_mem.
  void* handle() const noexcept { return handle_; }
  /// Bytes, as requested.
  uint64_t size() const noexcept { return size_; }
  /// The device that the memory is on.
  Device device() const noexcept { return device_; }
  /// A row-major tensor at the start of the memory. The size is not checked; the view borrows.
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
  detail::Shared<const registry::Backend> backend_;
  Device device_;
  void* handle_ = nullptr;
  uint64_t size_ = 0;
};

/// Owns a queue of a device. Enqueued work runs in order. The destructor waits for it. Move-only; a
/// default-constructed object is empty.
class [[nodiscard]] DeviceStream {
 public:
  DeviceStream() = default;
  DeviceStream(DeviceStream&& other) noexcept { swap(other); }
  DeviceStream& operator=(DeviceStream&& other) noexcept { return swap(other), *this; }
  OPMUX_API ~DeviceStream();

  /// The value for CallOptions::stream.
  void* get() const noexcept { return stream_; }
  Device device() const noexcept { return device_; }
  /// Waits until everything in the queue is done. Fails with the first outcome that was not ok
  /// since the last time ("device.function").
  OPMUX_API Status synchronize() const;

 private:
  friend class DeviceAccess;
  void swap(DeviceStream& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
  }
  detail::Shared<const registry::Backend> backend_;
  Device device_;
  void* stream_ = nullptr;
};

/// Owns a point in time on a stream, recorded by DeviceAccess::record_event(). Move-only; a
/// default-constructed object is empty.
class [[nodiscard]] DeviceEvent {
 public:
  DeviceEvent() = default;
  DeviceEvent(DeviceEvent&& other) noexcept { swap(other); }
  DeviceEvent& operator=(DeviceEvent&& other) noexcept { return swap(other), *this; }
  OPMUX_API ~DeviceEvent();

 private:
  friend class DeviceAccess;
  void swap(DeviceEvent& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(event_, other.event_);
  }
  detail::Shared<const registry::Backend> backend_;
  void* event_ = nullptr;
};

/// Access to memory and streams of one backend's devices; made by PluginControl::device_access().
/// Cheap to copy, safe from any thread. A null stream means the default stream of the device.
/// Failures have the reason "device.function" and the code that the backend returned.
class DeviceAccess {
 public:
  /// Number of devices; their ids are 0, 1 ...
  OPMUX_API int32_t count() const;
  /// Allocates `size` bytes, aligned to 64, on device `id`. Fails with `resource` if there is not
  /// enough memory.
  OPMUX_API Result<DeviceMemory> allocate(uint64_t size, int32_t id = 0) const;
  /// Creates a queue on device `id`.
  OPMUX_API Result<DeviceStream> create_stream(int32_t id = 0) const;
  /// Copies to or from the start of device memory, in the order of the stream. May return before
  /// the copy is done: memory of the CPU must stay valid and unchanged until the stream is
  /// synchronized.
  OPMUX_API Status copy_in(const DeviceMemory& to, const void* from, uint64_t size,
                           void* stream = nullptr) const;
  OPMUX_API Status copy_out(void* to, const DeviceMemory& from, uint64_t size,
                            void* stream = nullptr) const;
  /// Waits for a stream of the program, or for the default stream; see DeviceStream::synchronize().
  OPMUX_API Status synchronize(void* stream = nullptr, int32_t id = 0) const;

  /// Records the moment at which the stream reaches this point of its queue. Fails with
  /// `unsupported` ("device.no_events") if the backend cannot record events.
  OPMUX_API Result<DeviceEvent> record_event(void* stream = nullptr, int32_t id = 0) const;
  /// Nanoseconds between two events of one device. Waits until both were reached.
  OPMUX_API Result<uint64_t> elapsed_ns(const DeviceEvent& start, const DeviceEvent& stop) const;

  /// For PluginControl::device_access().
  explicit DeviceAccess(detail::Shared<const registry::Backend> backend)
      : backend_(std::move(backend)) {}

 private:
  Device device(int32_t id) const;
  detail::Shared<const registry::Backend> backend_;
};

}  // namespace opmux
