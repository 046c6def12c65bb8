#pragma once

#include "record/capture.hpp"
#include "record/recording.hpp"
#include "verify/divergence.hpp"

namespace opmux::runtime {

/// Takes cause, element and arguments of a call whose result was wrong: elements are those from
/// before the call, also of tensors that it wrote to.
void describe_divergence(const verify::Divergence& divergence, const record::CaptureRules& rules,
                         record::Recording& recording);

}  // namespace opmux::runtime
