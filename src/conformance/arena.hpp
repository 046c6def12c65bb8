#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <opmux/device.hpp>
#include <opmux/operator.hpp>
#include <opmux/runtime.hpp>

namespace opmux::conformance {

/// Memory between guard pages, which fault on any access. Move-only.
class Arena {
 public:
  Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::byte* begin() const { return begin_; }
  std::byte* end() const { return end_; }

 private:
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

/// One arena per tensor of a call, created on first use and reused by later calls. Not thread-safe.
class Arenas {
 public:
  Arena& at(size_t index) {
    while (arenas_.size() <= index) arenas_.push_back(std::make_unique<Arena>());
    return *arenas_[index];
  }

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;
};

/// Thread pool for an implementation under test. The threads start at the same moment and take the
/// pieces of work from last to first, so that reliance on an order or on a single thread shows.
class Pool {
 public:
  static constexpr int kThreads = 3;

  CallOptions options() {
    CallOptions options;
    options.max_threads = kThreads;
    options.parallel_for = &Pool::parallel_for;
    options.pool = this;
    return options;
  }
  /// Whether a piece of work faulted. The other pieces still ran.
  bool crashed() const { return crashed_; }

 private:
  static void parallel_for(void* pool, int64_t count, void* context,
                           void (*body)(void* context, int64_t index));
  std::atomic<bool> crashed_{false};
};

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
