#pragma once

#include "reference.hpp"

#include "operator_call.hpp"

namespace opmux::python {

/// The operator behind an object of type Operator.
OperatorCall* operator_of(PyObject* self);

/// Calls the engine with a frame that was converted: in the scope around, with the GIL given away
/// for large outputs. What the call returns, or null with an exception set.
PyObject* call_engine(const OperatorCall& op, ArgumentFrame& frame);
/// The same for a bound plan.
PyObject* call_plan(const OperatorCall& op, Plan& plan, ArgumentFrame& frame);

}  // namespace opmux::python
