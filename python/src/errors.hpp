#pragma once

#include "reference.hpp"

#include <string>

#include <opmux/status.hpp>

/// Statuses as Python exceptions and back. All with the GIL held.
namespace opmux::python {

/// The class to raise for a code; given by the package when it is imported.
void set_error_type(Code code, PyObject* type);

/// Sets the exception of a status that is not ok; `cause`, if not null, becomes its __cause__.
void raise(const Status& status, PyObject* cause = nullptr);
void raise(Code code, const char* reason, const std::string& message);

/// What the exception that is set now means as an outcome of a kernel.
struct Caught {
  Code code;
  std::string text;     ///< "ValueError: no such size"
  Reference exception;  ///< with its traceback
};
Caught catch_exception();

}  // namespace opmux::python
