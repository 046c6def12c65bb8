#pragma once

#include <functional>

#include <nanobind/nanobind.h>

#include "errors.hpp"
#include "runtime_object.hpp"

namespace opmux::python {

/// A function that is called from any thread; never given back, it may be needed as long as the
/// process lives.
inline PyObject* kept_function(const nanobind::object& function) {
  if (PyCallable_Check(function.ptr()) == 0) throw nanobind::type_error("a function is wanted");
  return nanobind::object(function).release().ptr();
}

/// Tells a Python function of each `Told`.
template <class Told>
std::function<void(const Told&)> listener_of(const nanobind::object& function) {
  PyObject* const hear = kept_function(function);
  return [hear](const Told& told) {
    if (Py_IsInitialized() == 0) return;
    const WithGil gil;
    const nanobind::object object = nanobind::cast(told);
    const Reference answer = Reference::steal(PyObject_CallOneArg(hear, object.ptr()));
    if (!answer) PyErr_WriteUnraisable(hear);
  };
}

}  // namespace opmux::python
