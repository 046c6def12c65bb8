#pragma once

#include "reference.hpp"

#include <opmux/implementation.hpp>
#include <opmux/tensor.hpp>

/// Python objects around what the engine lends for the length of a call.
namespace opmux::python {

/// A tensor for a Python implementation, as its favourite library has them.
Reference borrowed_tensor(const TensorView& view);

/// Facts for a Python verifier; they are gone after end_facts_view.
Reference facts_view(const Facts& facts);
void end_facts_view(const Reference& view);

}  // namespace opmux::python
