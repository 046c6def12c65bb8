#pragma once

#include "reference.hpp"

#include "constants.hpp"

namespace opmux::python {

/// The constant inside an object of type Constant; null if the object has another type.
const HeldConstant* held_constant(PyObject* object);

}  // namespace opmux::python
