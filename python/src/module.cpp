#include "bindings.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <opmux/version.h>
#include <opmux/runtime.hpp>

#include "callable_types.hpp"
#include "dispatcher.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "scope_object.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void add_type(nb::module_& module, const char* name, PyTypeObject* type) {
  if (type == nullptr) nb::raise_python_error();
  module.attr(name) = nb::handle(reinterpret_cast<PyObject*>(type));
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(error.status());
  }
}

/// The names of the library's optional features.
std::vector<std::string> features_of_library() {
  std::vector<std::string> names;
  std::string_view rest = features();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

void fill(nb::module_& module) {
  nb::set_leak_warnings(false);  // the default runtime lives until the process ends
  nb::register_exception_translator(translate);
  if (!watch_end_of_interpreter()) nb::raise_python_error();
  module.attr("__version__") = OPMUX_VERSION;
  module.def("features", &features_of_library);
  add_type(module, "Operator", make_operator_type());
  add_type(module, "Plan", make_plan_type());
  add_type(module, "Dispatchable", make_dispatcher_type());
  add_type(module, "Scope", make_scope_type());
  module.attr("scope_variable") = nb::handle(scope_variable());
  bind_information(module);
  bind_policy(module);
  bind_plugin_options(module);
  bind_policy_sources(module);
  bind_state_options(module);
  bind_state_pages(module);
  bind_recording(module);
  bind_health(module);
  bind_locks(module);
  bind_runtime(module);
  bind_instances(module);
  bind_implementations(module);
  bind_points(module);
  bind_readers(module);
  bind_dispatchable(module);
  bind_benchmark(module);
  bind_race(module);
}

}  // namespace
}  // namespace opmux::python

NB_MODULE(_core_of_main, module) { opmux::python::fill(module); }

/// Refuses subinterpreters before nanobind is initialized for them, because listeners,
/// implementations and types belong to the main interpreter.
// NOLINTBEGIN(readability-identifier-naming): the interpreter looks for this name
extern "C" NB_EXPORT PyObject* PyInit__core();
extern "C" PyObject* PyInit__core() {
  // NOLINTEND(readability-identifier-naming)
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_of_main();
  PyErr_SetString(PyExc_ImportError,
                  "opmux supports only the main interpreter: threads of its runtime call Python "
                  "functions, and a subinterpreter may end before them");
  return nullptr;
}
