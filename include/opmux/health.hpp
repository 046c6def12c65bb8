#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/device.hpp>
#include <opmux/export.hpp>

/// How well what a runtime runs is doing. An implementation that fails too often is taken out of
/// the choice for a while, for the kind of calls that failed; after that a few calls try it again.
namespace opmux {

/// healthy: nothing is wrong. degraded: it serves, but not as well as it could. unhealthy: nothing
/// of it can be used. fatal: nothing of it can be used again in this process.
enum class Health : uint8_t { healthy, degraded, unhealthy, fatal };
OPMUX_API std::string_view name_of(Health health) noexcept;

/// closed: runs. open: does not run. half_open: a few calls at a time try it. isolated: does not
/// run until it is closed by hand.
enum class BreakerState : uint8_t { closed, open, half_open, isolated };
OPMUX_API std::string_view name_of(BreakerState state) noexcept;

/// What a breaker can be told by hand. open: as if it had failed too often. close: forgets
/// everything. isolate: open until it is closed by hand.
enum class BreakerForce : uint8_t { open, close, isolate };

/// The state of one class of calls of an implementation that failed lately.
struct BreakerInfo {
  std::string implementation, op;
  std::string what;  ///< the calls: "f32 H<=4096 rows<=32 on cpu:0", or "all calls"
  BreakerState state = BreakerState::closed;
  uint32_t failures_in_a_row = 0;
  uint32_t openings = 0;       ///< since it was last trusted
  uint64_t next_probe_ms = 0;  ///< while open: until calls try it again
  std::string why;             ///< it got into this state; empty while closed
};

/// A breaker that changed its state.
struct BreakerEvent {
  std::string implementation, op, what;
  BreakerState from = BreakerState::closed, to = BreakerState::closed;
  uint32_t openings = 0;
  uint64_t open_for_ms = 0;
  std::string why;  ///< "too many failures in a row", "by hand"
};
/// Told from the thread that caused the change, never under a lock of opmux. Must not throw.
using BreakerListener = std::function<void(const BreakerEvent&)>;

struct BackendHealth {
  std::string name;
  Health health = Health::healthy;
  std::string reason;
};
struct DeviceState {
  Device device;
  Health health = Health::healthy;
  std::string reason;
};

/// An element that an implementation computed otherwise than the reference.
struct ShadowMismatch {
  std::string what;     ///< the calls: "f32 H<=4096 rows<=32 on cpu:0"
  std::string element;  ///< "y[3,5]", the first that is wrong
  double got = 0, expected = 0;
  double tolerance = 0;  ///< how far from the expected value a right one may be
  std::string text;      ///< all of it in a sentence
};

/// What the shadow check found about an implementation.
struct ShadowInfo {
  std::string implementation;
  uint64_t compared = 0;  ///< calls that the reference computed again
  uint64_t mismatches = 0;
  uint64_t not_finite = 0;  ///< with NaN or infinity in what it wrote and not in what it read
  struct Skipped {
    std::string reason;  ///< "memory", "device", "stream", "nested" ...
    uint64_t calls = 0;
  };
  std::vector<Skipped> skipped;        ///< calls whose turn it was that were not compared
  std::optional<ShadowMismatch> last;  ///< mismatch
};

/// The shadow check of a runtime.
struct ShadowReport {
  uint32_t every = 0;    ///< one call in so many; 0: it is off
  uint64_t waiting = 0;  ///< copied calls that were not compared yet
  std::vector<ShadowInfo> implementations;
};

/// For a server's own health endpoint.
struct HealthReport {
  /// fatal: a device is lost, and this process should be replaced. degraded: some backend or device
  /// is not healthy, and others stand in. Never `unhealthy`: the reference cannot be taken away.
  Health verdict = Health::healthy;
  std::vector<std::string> reasons;
  std::vector<BackendHealth> backends;  ///< every one, by name
  std::vector<DeviceState> devices;     ///< those that reported errors or are lost
  std::vector<BreakerInfo> breakers;    ///< of implementations that failed lately
  ShadowReport shadow;
};

}  // namespace opmux
