#pragma once

#include "reference.hpp"

#include "operator_call.hpp"

/// The Python types Operator and Plan, written against the C API so that vectorcall reaches them
/// without a nanobind wrapper.
namespace opmux::python {

/// Create the types; null with an exception set on failure.
PyTypeObject* make_operator_type();
PyTypeObject* make_plan_type();

/// Returns a new Operator, which keeps the runtime object alive.
PyObject* new_operator(PyObject* runtime_object, HeldRuntime& held, const Operator& op);
/// Returns a new Plan, which keeps the operator object alive.
PyObject* new_plan(PyObject* operator_object, Plan plan);
/// The operator or plan inside a Python object; null if the object has another type.
OperatorCall* operator_of(PyObject* object);
Plan* plan_of(PyObject* object);

}  // namespace opmux::python
