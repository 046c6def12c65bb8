#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace opmux::tune::race {

/// Why a round was not used, or `none`.
enum class Noise : uint8_t {
  none,
  steal,           ///< the hypervisor ran something else on this processor
  context_switch,  ///< the kernel ran another thread in place of this one
  ruler,           ///< a kernel of fixed length took more or less time than it usually takes
};
inline constexpr size_t kNoises = 4;

constexpr std::string_view noise_name(Noise noise) {
  switch (noise) {
    case Noise::none: return "none";
    case Noise::steal: return "steal";
    case Noise::context_switch: return "context_switch";
    case Noise::ruler: return "ruler";
  }
  return "unknown";
}

/// Watches the machine while a round is measured. Tests replace it.
class NoiseObserver {
 public:
  virtual ~NoiseObserver() = default;
  virtual void begin_round() = 0;
  /// The disturbance since begin_round. The race drops the round unless it is `none`.
  virtual Noise end_round() = 0;
};

}  // namespace opmux::tune::race
