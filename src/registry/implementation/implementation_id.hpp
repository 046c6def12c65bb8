#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

namespace opmux::registry {

/// Whether a provider may have this name: it is valid and not a policy token. `reference` and `own`
/// are allowed only for providers of kind reference.
bool valid_provider(std::string_view name, Kind kind);

/// The parts of "op/provider.variant"; op may contain one dot.
struct ImplementationId {
  std::string op, provider, variant;
};
/// Fails with reason "registry.name".
Result<ImplementationId> parse_implementation_id(std::string_view id);

}  // namespace opmux::registry
