#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux::registry {

/// Which implementations were put last into each stream of a device: the suspects when it reports
/// an error later. Thread-safe without a lock. Streams that meet in one ring have fewer places.
class StreamHistory {
 public:
  static constexpr size_t kLength = 32;

  void note(Device device, const void* stream, uint32_t implementation) noexcept;
  /// Numbers of implementations, the latest first, at most kLength; one for each call.
  std::vector<uint32_t> latest(Device device, const void* stream) const;

 private:
  static constexpr size_t kRings = 64;
  struct Ring {
    std::atomic<uint32_t> next{0};
    /// A stream's 32-bit mark and a number; 0 = nothing yet.
    std::array<std::atomic<uint64_t>, kLength> words{};
  };
  std::array<Ring, kRings> rings_;
};

}  // namespace opmux::registry
