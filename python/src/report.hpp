#pragma once

#include "reference.hpp"

#include <string>

#include <opmux/explanation.hpp>

#include "scope_object.hpp"

namespace opmux::python {

/// Appends the report of a call to the lists of all enclosing scopes that collect reports. Returns
/// `result`.
PyObject* hand_over(const std::string& op, const CallReport& report,
                    const ScopeObject::Content& scope, PyObject* result);

}  // namespace opmux::python
