#pragma once

#include <optional>
#include <span>
#include <vector>

#include <opmux/instance.hpp>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"
#include "conformance/placed.hpp"
#include "verify/expected.hpp"

namespace opmux::conformance {

using verify::Expected;

/// Calls the operator or, for an implementation that needs an instance, a new instance that fixes
/// the scalars and `const` tensors, so that its results do not depend on earlier cases.
Status call_afresh(const Operator& op, bool needs_instance, std::span<const opmux_arg> arguments,
                   const CallOptions& options = {}, CallReport* report = nullptr);

/// The case as the reference gets it: contiguous tensors, and outputs in f32 where it computes them
/// in f32.
Case for_reference(const Case& c);

/// Runs the reference, which the thread's policy must require, and computes error bounds. Fails
/// with the reference's status if it refuses the case.
Result<Expected> expect(const Operator& op, const Case& c, Arenas& arenas,
                        bool needs_instance = false);

/// The first element outside the bounds, if any. `got` has the elements of each output.
std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got);

}  // namespace opmux::conformance
