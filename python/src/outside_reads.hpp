#pragma once

#include "reference.hpp"

/// Finding out what a Python function reads besides its arguments. All functions need the GIL.
namespace opmux::python {

/// Sets the functions whose reads count: the code objects of os.environ's methods (`__getitem__`
/// first), and the module torch._C, which may be null.
void watch_reads_of(PyObject* environ_codes, PyObject* torch_module);

/// Calls `function(*args, **kwargs)`. Meanwhile calls `note(name)` for each environment variable
/// that the thread reads through os.environ, as "os.environ['NAME']", and for each function of
/// torch._C that it calls, as "torch.NAME". Uses the profile hook of the thread, and passes events
/// on to the profiler that was set before. Null with an exception set on failure.
PyObject* call_watched(PyObject* function, PyObject* args, PyObject* kwargs, PyObject* note);

}  // namespace opmux::python
