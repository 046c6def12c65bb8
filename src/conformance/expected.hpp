#pragma once

#include <optional>
#include <vector>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"
#include "conformance/placed.hpp"
#include "verify/expected.hpp"

namespace opmux::conformance {

using verify::Expected;

/// Runs the reference, which the thread's policy must require, and computes error bounds. Fails
/// with the reference's status if it refuses the case.
Result<Expected> expect(const Operator& op, const Case& c, Arenas& arenas);

/// The first element outside the bounds, if any. `got` has the elements of each output.
std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got);

}  // namespace opmux::conformance
