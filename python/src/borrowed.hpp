#pragma once

#include "reference.hpp"

#include <opmux/implementation.hpp>
#include <opmux/tensor.hpp>

/// Python objects that wrap data which the engine lends for the duration of a call.
namespace opmux::python {

/// Wraps a tensor for a Python implementation: as a torch tensor if torch is imported, else as a
/// numpy array. Null with an exception set on failure.
Reference borrowed_tensor(const TensorView& view);

/// Wraps facts for a Python verifier. end_facts_view invalidates the object.
Reference facts_view(const Facts& facts);
void end_facts_view(const Reference& view);

}  // namespace opmux::python
