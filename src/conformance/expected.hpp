#pragma once

#include <optional>
#include <vector>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"
#include "conformance/placed.hpp"
#include "verify/expected.hpp"

namespace opmux::conformance {

using verify::Expected;

/// Runs the reference, which must be what the thread's policy requires, and bounds the errors.
/// Fails with what the reference says if it does not take the case.
Result<Expected> expect(const Operator& op, const Case& c, Arenas& arenas);

/// The first element that is not what it should be. `got` holds the elements of each output.
std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got);

}  // namespace opmux::conformance
