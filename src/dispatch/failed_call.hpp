#pragma once

#include <cstdint>
#include <string_view>

#include "registry/facts.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// An implementation's `failed`, told while the call's arguments are still there and before anybody
/// runs in its place.
struct FailedCall {
  const registry::ImplementationRecord& implementation;
  const registry::Signature& signature;
  int32_t max_threads = 0;
  std::string_view says;  ///< the implementation's own words
};

}  // namespace opmux::dispatch
