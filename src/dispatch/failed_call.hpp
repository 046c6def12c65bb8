#pragma once

#include <cstdint>
#include <string_view>

#include "registry/facts.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Describes a call that returned `failed`, for EngineParts::on_failed. The handler runs before any
/// fallback, while the arguments are valid.
struct FailedCall {
  const registry::ImplementationRecord& implementation;
  const registry::Signature& signature;
  int32_t max_threads = 0;
  std::string_view says;  ///< error text of the implementation
};

}  // namespace opmux::dispatch
