#include "bindings.hpp"

#include "reference.hpp"
#include "type_readers.hpp"

namespace nb = nanobind;

/// Baseline functions for `python -m opmux.bench`.
namespace opmux::python {
namespace {

PyObject* call_nothing(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) { Py_RETURN_NONE; }

/// Reads three tensors through the DLPack C exchange API and does nothing else.
PyObject* exchange_three(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count + (keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords)) != 3) Py_RETURN_NONE;
  static PyTypeObject* type = nullptr;
  static const ExchangeApi* exchange = nullptr;
  if (type != Py_TYPE(args[0])) {
    type = Py_TYPE(args[0]);
    exchange = reader_of(type).exchange;
  }
  opmux_tensor tensor;
  for (int i = 0; exchange != nullptr && i < 3; ++i) {
    if (exchange->borrow_from_object(args[i], &tensor) != 0) return nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"call_nothing", as_method(call_nothing), METH_FASTCALL | METH_KEYWORDS,
     "Accepts any arguments and does nothing."},
    {"exchange_three", as_method(exchange_three), METH_FASTCALL | METH_KEYWORDS,
     "Reads three tensors through the DLPack C exchange API and does nothing else."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_benchmark(nb::module_& module) {
  if (PyModule_AddFunctions(module.ptr(), methods) != 0) nb::raise_python_error();
}

}  // namespace opmux::python
