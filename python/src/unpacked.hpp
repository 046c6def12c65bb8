#pragma once

#include <vector>

#include "bindings.hpp"

namespace opmux::python {

/// Positional and named arguments in vectorcall layout.
struct Unpacked {
  Unpacked(const nanobind::args& args, const nanobind::kwargs& kwargs) {
    for (const nanobind::handle arg : args) objects.push_back(arg.ptr());
    for (const auto& [key, value] : kwargs) objects.push_back(value.ptr());
    names = nanobind::steal<nanobind::tuple>(PyTuple_New(static_cast<Py_ssize_t>(kwargs.size())));
    Py_ssize_t at = 0;
    for (const auto& [key, value] : kwargs) {
      PyTuple_SET_ITEM(names.ptr(), at++, nanobind::object(nanobind::borrow(key)).release().ptr());
    }
    count = static_cast<Py_ssize_t>(args.size());
  }
  std::vector<PyObject*> objects;
  nanobind::tuple names;
  Py_ssize_t count;
};

}  // namespace opmux::python
