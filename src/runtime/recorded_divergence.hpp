#pragma once

#include "record/capture.hpp"
#include "record/recording.hpp"
#include "verify/divergence.hpp"

namespace opmux::runtime {

/// Fills in cause, element and arguments of a call whose result was wrong. The elements are those
/// before the call, also for tensors that it wrote to.
void describe_divergence(const verify::Divergence& divergence, const record::CaptureRules& rules,
                         record::Recording& recording);

}  // namespace opmux::runtime
