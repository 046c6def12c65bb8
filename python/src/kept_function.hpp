#pragma once

#include <functional>

#include <nanobind/nanobind.h>

#include "errors.hpp"
#include "gil.hpp"
#include "runtime_object.hpp"

namespace opmux::python {

/// Takes a reference to a function that any thread may call. Leaked on purpose, because the runtime
/// may call it until the process ends.
inline PyObject* kept_function(const nanobind::object& function) {
  if (PyCallable_Check(function.ptr()) == 0) throw nanobind::type_error("expected a function");
  return nanobind::object(function).release().ptr();
}

/// Calls a Python function with the items of a tuple; throws nanobind::python_error.
inline nanobind::object called(PyObject* function, const nanobind::tuple& arguments) {
  PyObject* const answer = guarded([&] { return PyObject_CallObject(function, arguments.ptr()); });
  if (answer == nullptr) nanobind::raise_python_error();
  return nanobind::steal(answer);
}

/// Makes a listener that calls a Python function with each object of type `Told`.
template <class Told>
std::function<void(const Told&)> listener_of(const nanobind::object& function) {
  PyObject* const hear = kept_function(function);
  return [hear](const Told& told) {
    if (Py_IsInitialized() == 0) return;
    const WithGil gil;
    if (!gil) return;
    const nanobind::object object = nanobind::cast(told);
    const Reference answer = call_with(hear, object.ptr());
    if (!answer) PyErr_WriteUnraisable(hear);
  };
}

}  // namespace opmux::python
