#pragma once

#include <string>
#include <string_view>

#include "registry/record.hpp"
#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::verify {

/// A call whose result is not the reference's. Borrows everything; valid while it is told.
struct Divergence {
  const registry::ImplementationRecord& implementation;  ///< that ran
  const registry::Schema& schema;
  const CallCopy& call;      ///< its arguments before, and what it wrote
  const Mismatch& mismatch;  ///< the first element that is wrong
  std::string_view text;     ///< the same in words
  std::string_view what;     ///< the class of such calls: "f32 H<=4096 rows<=32 on cpu:0"
};

/// Is told of divergences, on the thread that compares; never under a lock. Thread-safe.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void saw(const Divergence& divergence) = 0;
};

}  // namespace opmux::verify
