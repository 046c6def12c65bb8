#include "errors.hpp"

#include <map>

namespace opmux::python {
namespace {

std::map<Code, PyObject*>& types() {
  static auto* const all = new std::map<Code, PyObject*>;
  return *all;
}

PyObject* type_of(Code code) {
  const auto found = types().find(code);
  return found == types().end() ? PyExc_RuntimeError : found->second;
}

/// The code of the first opmux class that the exception is an instance of; other exceptions are
/// `resource` (MemoryError) or `failed`.
Code code_of(PyObject* exception) {
  for (const auto& [code, type] : types()) {
    if (PyObject_IsInstance(exception, type) == 1) return code;
  }
  PyErr_Clear();
  return PyErr_GivenExceptionMatches(exception, PyExc_MemoryError) != 0 ? Code::resource
                                                                        : Code::failed;
}

std::string text_of(PyObject* exception) {
  std::string text = Py_TYPE(exception)->tp_name;
  const Reference shown = Reference::steal(PyObject_Str(exception));
  const char* words = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  if (words == nullptr) PyErr_Clear();
  if (words != nullptr && *words != 0) text.append(": ").append(words);
  return text;
}

}  // namespace

void set_error_type(Code code, PyObject* type) {
  Py_INCREF(type);
  types()[code] = type;
}

void raise(const Status& status, PyObject* cause) {
  const std::string message(status.message());
  const std::string reason(status.reason());
  PyObject* const type = type_of(status.code());
  const Reference error =
      Reference::steal(PyObject_CallFunction(type, "ss", message.c_str(), reason.c_str()));
  if (!error) return;
  if (cause != nullptr) {
    Py_INCREF(cause);
    PyException_SetCause(error.get(), cause);
  }
  PyErr_SetObject(type, error.get());
}

void raise(Code code, const char* reason, const std::string& message) {
  raise(Status(code, reason, message));
}

Caught catch_exception() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  Caught caught{code_of(value), text_of(value), Reference::steal(value)};
  return caught;
}

}  // namespace opmux::python
