#pragma once

#include "reference.hpp"

#include "constants.hpp"

namespace opmux::python {

/// The constant inside of what opmux.constant() returned; null if it is something else.
const HeldConstant* held_constant(PyObject* object);

}  // namespace opmux::python
