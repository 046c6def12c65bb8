#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux::registry {

/// The implementations that were enqueued last on each stream of a device. They are the suspects
/// when the device reports an asynchronous error. Thread-safe and lock-free. Streams that hash to
/// the same ring share its slots.
class StreamHistory {
 public:
  static constexpr size_t kLength = 32;

  void note(Device device, const void* stream, uint32_t implementation) noexcept;
  /// Implementation numbers of the latest calls on a stream, newest first, at most kLength.
  std::vector<uint32_t> latest(Device device, const void* stream) const;

 private:
  static constexpr size_t kRings = 64;
  struct Ring {
    std::atomic<uint32_t> next{0};
    /// Upper half: hash of the stream, never 0. Lower half: implementation number. 0 = empty.
    std::array<std::atomic<uint64_t>, kLength> words{};
  };
  std::array<Ring, kRings> rings_;
};

}  // namespace opmux::registry
