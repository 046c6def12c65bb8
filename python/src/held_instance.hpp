#pragma once

#include "reference.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include <opmux/instance.hpp>

namespace opmux::python {

/// The object that Operator.instance() returns. Keeps the operator and the fixed arguments alive.
struct HeldInstance {
  Reference op;
  Reference fixed;              ///< dict of the arguments by name
  std::vector<uint8_t> passed;  ///< schema positions of the arguments that calls pass
  std::vector<std::pair<uint8_t, const void*>> parameters;  ///< positions and data of tensors
  Instance instance;
};

/// Makes an instance of an Operator object; `keywords` and `values` name the fixed arguments. Null
/// with an exception set on failure.
PyObject* new_instance(PyObject* op, PyObject* const* values, PyObject* keywords);

}  // namespace opmux::python
