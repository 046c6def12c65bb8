#pragma once

#include <string_view>

#include <opmux/status.hpp>

#include "base/text.hpp"

namespace opmux::registry {

/// The error for an attempt to change a frozen runtime; `what` names the attempted operation.
inline Status frozen(std::string_view what) {
  return {Code::frozen, "runtime.frozen",
          base::concat(what, ": this runtime is frozen; create a new runtime to make changes")};
}

}  // namespace opmux::registry
