#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

namespace opmux::registry {

/// Whether a name is `[a-z][a-z0-9_]*` and at most 64 bytes.
bool valid_name(std::string_view name);
/// Whether a provider may have this name: valid, and not a policy token. `reference` and `own` are
/// for providers of kind reference only.
bool valid_provider(std::string_view name, Kind kind);
/// An operator's name: one valid name, or `vendor.name`.
bool valid_operator_name(std::string_view name);
/// Valid names with dots between them: "gemm.tile_n".
bool valid_dotted_name(std::string_view name);

/// Splits "op/provider.variant" (op may hold one dot); fails with reason "registry.name".
struct ImplementationId {
  std::string op, provider, variant;
};
Result<ImplementationId> parse_implementation_id(std::string_view id);

}  // namespace opmux::registry
