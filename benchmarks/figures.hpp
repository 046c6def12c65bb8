#pragma once

#include <optional>
#include <vector>

#include "rounds.hpp"

namespace opmux::bench {

/// Measures and returns every figure with its limit.
std::vector<Figure> all_figures(int rounds);

/// Calls of a no-op through c10's unboxed dispatch; nullopt if this build has no torch.
std::optional<Subject> c10_subject();

}  // namespace opmux::bench
