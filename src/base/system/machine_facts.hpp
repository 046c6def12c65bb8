#pragma once

#include <cstdint>
#include <string>

namespace opmux::base {

/// Facts about this machine as the kernel and the processor state them.
struct MachineFacts {
  std::string cpuinfo;  ///< text of /proc/cpuinfo; empty if it cannot be read
  /// The processor states that the kernel enables (XCR0); 0 if the processor has no such register.
  uint64_t enabled_states = 0;
  uint64_t last_level_cache = 0;  ///< in bytes; 0 if it is not known
  std::string kernel;             ///< release of the kernel: "6.1.0-13-amd64"
};

MachineFacts read_machine_facts();

}  // namespace opmux::base
