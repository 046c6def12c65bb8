#pragma once

#include "reference.hpp"

#include "operator_call.hpp"

/// Operator and Plan as Python types of their own: called by vectorcall, without a wrapper between.
namespace opmux::python {

/// Both types, ready to be put into the module; null with an exception set.
PyTypeObject* make_operator_type();
PyTypeObject* make_plan_type();

/// A new Operator, which keeps the runtime's object alive.
PyObject* new_operator(PyObject* runtime_object, HeldRuntime& held, const Operator& op);
/// A new Plan of an operator.
PyObject* new_plan(PyObject* operator_object, Plan plan);
/// Null if the object is something else.
OperatorCall* operator_of(PyObject* object);
Plan* plan_of(PyObject* object);

}  // namespace opmux::python
