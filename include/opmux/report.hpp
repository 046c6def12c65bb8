#pragma once

#include <cstdint>
#include <string>

#include <opmux/status.hpp>

namespace opmux {

/// What one call did, filled in only when asked for (Operator::with).
struct CallReport {
  std::string implementation;  ///< that ran last: "rms_norm/simd.avx512"; empty if none did
  bool fell_back = false;      ///< not the first choice ran, or a preferred one was refused
  std::string reason;          ///< why it fell back; empty otherwise
  std::string transforms;      ///< of tensors, for its sake: "contiguous(x), widen(y, x)"
  bool cached = false;         ///< the decision was known before this call
  uint64_t generation = 0;     ///< of the snapshot that decided
  uint64_t select_ns = 0;      ///< checking arguments and choosing
  uint64_t run_ns = 0;         ///< inside implementations, failed attempts included
  Code outcome = Code::ok;
};

}  // namespace opmux
