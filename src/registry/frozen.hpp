#pragma once

#include <string_view>

#include <opmux/status.hpp>

#include "base/text.hpp"

namespace opmux::registry {

/// The answer to whoever would change a frozen runtime; `what` was attempted.
inline Status frozen(std::string_view what) {
  return {Code::frozen, "runtime.frozen",
          base::concat(what, ": this runtime is frozen; changes go into a new one")};
}

}  // namespace opmux::registry
