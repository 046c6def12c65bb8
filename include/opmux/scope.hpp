#pragma once

#include <cstddef>
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

/// A policy that is ready to be entered, for those who carry scopes by themselves because their
/// work moves between threads: coroutines, Python's context variables. Copies are cheap; an empty
/// one is no scope.
class Scope {
 public:
  OPMUX_API Scope() noexcept;
  OPMUX_API Scope(const Scope&);
  OPMUX_API Scope(Scope&&) noexcept;
  OPMUX_API Scope& operator=(Scope) noexcept;
  OPMUX_API ~Scope();

  /// A scope within `around`, as PolicyScope nests; fails as it does.
  OPMUX_API static Result<Scope> make(Runtime& runtime, const Policy& policy,
                                      const Scope& around = {});

  /// Equal policies, equal numbers, for as long as the process lives; 0: no scope.
  uint32_t number() const noexcept { return static_cast<uint32_t>(context_ >> 32); }

  struct Held;

 private:
  friend class PolicyScope;
  friend class EnteredScope;
  std::shared_ptr<const Held> held_;
  uint64_t context_ = 0;
};

/// Makes a scope that of this thread and this block, whatever it was before. Costs a few
/// nanoseconds. The scope must outlive it.
class [[nodiscard]] EnteredScope {
 public:
  OPMUX_API explicit EnteredScope(const Scope& scope) noexcept;
  OPMUX_API ~EnteredScope();
  EnteredScope(const EnteredScope&) = delete;
  EnteredScope& operator=(const EnteredScope&) = delete;

 private:
  uint64_t before_;
  const Scope* outer_;
  size_t outer_depth_;
};

/// The number of the scope that this thread is in now; 0 if it is in none.
OPMUX_API uint32_t current_scope_number() noexcept;

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
