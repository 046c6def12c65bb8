#pragma once

#include <cstddef>
#include <cstdint>

#include <opmux/detail/export.hpp>
#include <opmux/policy.hpp>

/// Functions for language bindings, around every call. Programs use EnteredScope and AmbientScope.
namespace opmux::detail {

/// Removes and adds ambient facts (OPMUX_AMBIENT_*) of this thread and returns the previous ones,
/// for set_ambient(). For language bindings, which do this for every call. Changes nothing if there
/// is no memory for the thread's part of the library; the call itself then returns `resource`.
OPMUX_API uint32_t change_ambient(uint32_t removed, uint32_t added) noexcept;
/// Sets the ambient facts of this thread to those that change_ambient() returned.
OPMUX_API void set_ambient(uint32_t facts) noexcept;

/// An EnteredScope and a change_ambient() for one block, in one step for language bindings.
class [[nodiscard]] EnteredCall {
 public:
  /// Throws std::bad_alloc as EnteredScope does.
  OPMUX_API EnteredCall(const Scope& scope, uint32_t removed, uint32_t added);
  OPMUX_API ~EnteredCall();
  EnteredCall(const EnteredCall&) = delete;
  EnteredCall& operator=(const EnteredCall&) = delete;
  uint32_t ambient_before() const { return static_cast<uint32_t>(before_); }

 private:
  uint64_t before_;
  const Scope* outer_;
  size_t outer_depth_;
};

}  // namespace opmux::detail
