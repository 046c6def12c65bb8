#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace opmux::python {

/// An owning reference to a Python object. May be copied and destroyed only with the GIL held.
class Reference {
 public:
  Reference() = default;
  static Reference steal(PyObject* object) {
    Reference reference;
    reference.object_ = object;
    return reference;
  }
  static Reference borrow(PyObject* object) {
    Py_XINCREF(object);
    return steal(object);
  }
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference(const Reference& other) : object_(other.object_) { Py_XINCREF(object_); }
  Reference& operator=(Reference other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() { Py_XDECREF(object_); }

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

/// Casts a METH_FASTCALL | METH_KEYWORDS function to the type of method tables.
inline PyCFunction as_method(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t,
                                                   PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace opmux::python
