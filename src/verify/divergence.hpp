#pragma once

#include <string>
#include <string_view>

#include "registry/record.hpp"
#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::verify {

/// A call whose result differs from the reference. Borrows everything; valid only during the
/// callback.
struct Divergence {
  const registry::ImplementationRecord& implementation;  ///< implementation that ran
  const registry::Schema& schema;
  const CallCopy& call;      ///< inputs before the call, and outputs after it
  const Mismatch& mismatch;  ///< first wrong element
  std::string_view text;     ///< text of `mismatch`
  std::string_view what;     ///< class of the call: "f32 H<=4096 rows<=32 on cpu:0"
};

/// Receives divergences on the thread that compares, without any lock held. Must be thread-safe.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void saw(const Divergence& divergence) = 0;
};

}  // namespace opmux::verify
