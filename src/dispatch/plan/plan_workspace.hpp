#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

/// Gives a plan whose implementation has workspace() the memory that it asks for, restricts the
/// plan to its shapes, and lets every run ask again if anything else that workspace() may read has
/// changed: scalars, alignments and the packed instance; or if the memory has moved or may have
/// been freed. The frame must hold the arguments.
///
/// With `own`, which must outlive the plan, the memory is kept there; otherwise it belongs to the
/// calling thread. False if there is no memory; `call.workspace_size` then is the size asked for.
bool give_workspace(CachedPlan& plan, WorkspaceBuffer* own);

}  // namespace opmux::dispatch
