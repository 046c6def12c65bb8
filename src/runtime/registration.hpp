#pragma once

#include <functional>
#include <vector>

#include <opmux/runtime.hpp>

#include "registry/record.hpp"
#include "runtime/core.hpp"

namespace opmux {

/// Contents of a Registration: the implementations to withdraw, or a function that undoes the
/// registration.
struct Registration::Held {
  explicit Held(runtime::Core& owner, std::vector<registry::ImplementationPtr> added = {})
      : core(&owner), implementations(std::move(added)) {}
  Held(runtime::Core& owner, std::function<void()> undo)
      : core(&owner), take_back(std::move(undo)) {}

  void unpublish() noexcept;

  runtime::Core* core;
  std::vector<registry::ImplementationPtr> implementations;
  std::function<void()> take_back;
};

}  // namespace opmux
