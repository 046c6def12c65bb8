#pragma once

#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

#include "schema/dependencies.hpp"

namespace opmux::registry {

inline constexpr int kHighestPriority = 1000;

/// A Hint compiled against a schema.
struct CompiledHint {
  Hint hint;
  schema::Fact fact;  ///< the dimension of the hint
};

/// Fails with `invalid_argument`, "registry.hint", if a hint names a dimension that the schema does
/// not have (the message suggests the nearest name), if its range has no size, or if its priority
/// is not in 0 to 1000.
Result<std::vector<CompiledHint>> compile_hints(const std::vector<Hint>& hints,
                                                const schema::Schema& schema);

/// The first hint whose range has the dimension of the call, or null. A dimension that the call
/// lacks is in no range.
const CompiledHint* hint_for(const std::vector<CompiledHint>& hints,
                             const schema::Signature& signature);

/// Adds the bounds of the ranges, so that calls on two sides of a bound are decided apart.
void add_dependencies(const std::vector<CompiledHint>& hints, schema::Dependencies& into);

/// The highest priority in any call: that of the best hint, or `priority` if it is higher.
int best_priority(int priority, const std::vector<CompiledHint>& hints);

}  // namespace opmux::registry
