#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/abi.h>

namespace opmux {

/// One implementation as `opmux list` shows it.
struct ImplementationInfo {
  std::string id, backend, kind, vendor;
  int priority = 0;
  bool available = false;
  std::string reason;  ///< why it is not available
  uint64_t calls = 0;
  uint32_t flags = 0;  ///< what it promises: OPMUX_IMPL_*
  int32_t device_type = OPMUX_DEVICE_CPU;
  /// Its memory is reached through Runtime::device_access of its backend.
  bool own_memory = false;
  /// "closed", or the worst state that some of its calls are in: "half open", "open", "isolated".
  std::string breaker = {};
};

/// One operator with all that implement it.
struct OperatorInfo {
  std::string name, schema, summary;
  std::vector<ImplementationInfo> implementations;  ///< by id
};

}  // namespace opmux
