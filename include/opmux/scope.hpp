#pragma once

#include <cstdint>
#include <memory>

#include <opmux/export.hpp>
#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux {

class Runtime;

/// A policy for this thread and this block, on top of those around it: the innermost wins for
/// `prefer`, `strict` and `allow`; `require` and `deny` add up. Other threads are not concerned.
/// Scopes end in the reverse order of their beginning.
///
///     { opmux::PolicyScope only_reference{runtime, {.require = {"reference"}}};
///       rms_norm(y, x, weight); }
class [[nodiscard]] PolicyScope {
 public:
  /// A policy that is not valid changes nothing; status() says why.
  OPMUX_API PolicyScope(Runtime& runtime, const Policy& policy);
  OPMUX_API ~PolicyScope();
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

  const Status& status() const { return status_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  Status status_;
};

/// What surrounds calls of this thread and this block: facts that every decision may look at.
struct Ambient {
  bool grad = false, capturing = false, deterministic = false, training = false;
};

class [[nodiscard]] AmbientScope {
 public:
  OPMUX_API explicit AmbientScope(const Ambient& ambient);
  OPMUX_API ~AmbientScope();
  AmbientScope(const AmbientScope&) = delete;
  AmbientScope& operator=(const AmbientScope&) = delete;

 private:
  uint64_t before_;
};

}  // namespace opmux
