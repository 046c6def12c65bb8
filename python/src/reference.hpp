#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace opmux::python {

/// A counted reference to a Python object. Copied and destroyed with the GIL held only.
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

/// A METH_FASTCALL | METH_KEYWORDS function as method tables have them.
inline PyCFunction as_method(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t,
                                                   PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// Holds the GIL for a block, whoever the thread is.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace opmux::python
