#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/abi.h>

namespace opmux {

/// One implementation as `opmux list` shows it. Made by Runtime::list(), which asks backends
/// whether they are available.
struct ImplementationInfo {
  /// "rms_norm/simd.avx2", "simd", "default"; `vendor` is empty unless the kind is "vendor".
  std::string id, backend, kind, vendor;
  int priority = 0;  ///< From 0 to 1000, before boosts of a policy.
  /// Whether this machine and process can run it; policy is not considered.
  bool available = false;
  std::string reason;                      ///< Why it is not available; empty if it is.
  uint64_t calls = 0;                      ///< Calls that ended ok since the runtime was created.
  uint32_t flags = 0;                      ///< Promises: OPMUX_IMPL_*.
  int32_t device_type = OPMUX_DEVICE_CPU;  ///< OPMUX_DEVICE_* of its backend.
  /// Whether its backend has separate memory, reached through Runtime::device_access().
  bool own_memory = false;
  /// "closed", or the worst state among the breakers of its classes of calls: "half open", "open",
  /// "isolated".
  std::string breaker = {};
};

/// One operator with its implementations.
///
///   for (const opmux::OperatorInfo& op : runtime.list()) {
///     std::cout << op.name << ": " << op.implementations.size() << " implementations\n";
///   }
struct OperatorInfo {
  /// Name, canonical schema text, and one sentence; `summary` is empty except for standard
  /// operators.
  std::string name, schema, summary;
  std::vector<ImplementationInfo> implementations;  ///< Sorted by id.
};

}  // namespace opmux
