#pragma once

#include "reference.hpp"

#include "held_instance.hpp"
#include "operator_call.hpp"

namespace opmux::python {

/// The operator inside an object of type Operator; null if the object has another type.
OperatorCall* operator_of(PyObject* self);

/// Calls the engine with a converted frame, in the current scope. Releases the GIL for large
/// outputs. Returns the call's result, or null with an exception set.
PyObject* call_engine(const OperatorCall& op, ArgumentFrame& frame);
/// Like call_engine, through an instance.
PyObject* call_instance(const OperatorCall& op, const HeldInstance& through, ArgumentFrame& frame);
Explanation explain_instance(const HeldInstance& through, const ArgumentFrame& frame);
/// Like call_engine, for a bound plan.
PyObject* call_plan(const OperatorCall& op, Plan& plan, ArgumentFrame& frame);

}  // namespace opmux::python
