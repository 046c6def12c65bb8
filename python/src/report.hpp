#pragma once

#include "reference.hpp"

#include <string>

#include <opmux/report.hpp>

#include "scope_object.hpp"

namespace opmux::python {

/// Gives the report of a call to everyone around it who asked. Returns `result`.
PyObject* hand_over(const std::string& op, const CallReport& report,
                    const ScopeObject::Content& scope, PyObject* result);

}  // namespace opmux::python
