#pragma once

#include "reference.hpp"

#include <string>

#include <opmux/status.hpp>

/// Conversion between Status and Python exceptions. All functions need the GIL.
namespace opmux::python {

/// Sets the exception class for a code. The package calls it at import.
void set_error_type(Code code, PyObject* type);

/// Raises the exception of a status that is not ok; `cause`, if not null, becomes its __cause__.
void raise(const Status& status, PyObject* cause = nullptr);
void raise(Code code, const char* reason, const std::string& message);

/// A Python exception as a kernel outcome. catch_exception() takes and clears the current one.
struct Caught {
  Code code;
  std::string text;     ///< "ValueError: no such size"
  Reference exception;  ///< with its traceback
};
Caught catch_exception();

}  // namespace opmux::python
