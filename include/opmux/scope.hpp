#pragma once

#include <cstddef>
#include <cstdint>

#include <opmux/detail/pointer.hpp>
#include <opmux/export.hpp>
#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux {

class Runtime;

/// A policy for this thread and this block, on top of the scopes around it. The innermost scope
/// wins for `prefer`, `strict`, `allow` and the other ordering fields; `require` and `deny` of all
/// scopes hold. Other threads are not affected.
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   float x[4] = {}, y[4];
///   {
///     opmux::PolicyScope only_reference{runtime, {.require = {"reference"}}};
///     opmux::Status status = softmax(opmux::TensorView(y, opmux::f32, {1, 4}),
///                                    opmux::TensorView(x, opmux::f32, {1, 4}));
///   }
///
/// Scopes must end in the reverse order of their construction, on the same thread, before the
/// runtime is destroyed. The first call in a scope with a new policy compiles it; entering an equal
/// policy again is cheap. Scopes do not follow work to other threads: see Scope.
class [[nodiscard]] PolicyScope {
 public:
  /// Enters the scope. A policy that is not valid is not entered, and status() says why. The policy
  /// is copied. A scope is not tried on every operator: one that leaves no candidate makes calls
  /// fail with `no_candidate`.
  OPMUX_API PolicyScope(Runtime& runtime, const Policy& policy);
  /// Leaves the scope.
  OPMUX_API ~PolicyScope();
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

  /// Ok; `invalid_argument` for a policy that is not valid; `resource` ("policy.too_many_scopes")
  /// if 256 different scopes are alive.
  const Status& status() const { return status_; }

 private:
  struct State;
  detail::Owned<State> state_;
  Status status_;
};

/// A policy compiled for entering, for programs that carry scopes between threads themselves:
/// schedulers of coroutines, context variables of Python. Make it once, enter it wherever the work
/// runs:
///
///   opmux::Scope quiet = opmux::Scope::make(runtime, {.deny = {"vendor"}}).value();
///   {
///     opmux::EnteredScope inside(quiet);  // on any thread, any number of times
///     std::cout << (opmux::current_scope_number() == quiet.number()) << "\n";
///   }
///
/// Copies are cheap and share one policy. A default-constructed Scope is empty: entering it leaves
/// all scopes. Safe to enter from several threads at a time; the runtime must outlive it.
class Scope {
 public:
  OPMUX_API Scope() noexcept;
  OPMUX_API Scope(const Scope&);
  OPMUX_API Scope(Scope&&) noexcept;
  OPMUX_API Scope& operator=(Scope) noexcept;
  OPMUX_API ~Scope();

  /// A scope nested in `around`, combined as PolicyScope nests. Fails as PolicyScope::status()
  /// does. An `around` of another runtime is ignored.
  OPMUX_API static Result<Scope> make(Runtime& runtime, const Policy& policy,
                                      const Scope& around = {});

  /// Equal policies have equal numbers for as long as the process lives; 0 for an empty scope.
  uint32_t number() const noexcept { return static_cast<uint32_t>(context_ >> 32); }

  struct Held;

 private:
  friend class PolicyScope;
  friend class EnteredScope;
  detail::Shared<const Held> held_;
  uint64_t context_ = 0;
};

/// Makes `scope` the scope of this thread for this block, replacing the one that was active, and
/// restores that one at the end. Costs a few nanoseconds. `scope` must outlive this object, which
/// must be destroyed on the same thread.
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

/// Scope::number() of the scope that this thread is in; 0 outside of scopes.
OPMUX_API uint32_t current_scope_number() noexcept;

/// Facts about the surroundings of calls on this thread, which decisions and rules can depend on.
/// `deterministic` and `capturing` restrict candidates to implementations that promise it; `grad`
/// excludes implementations for inference only.
struct Ambient {
  bool grad = false, capturing = false, deterministic = false, training = false;
};

/// Sets the ambient facts of this thread for this block, in every runtime, and restores the
/// previous ones at the end. All four facts are replaced, not merged.
///
///   opmux::AmbientScope reproducible({.deterministic = true});
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
