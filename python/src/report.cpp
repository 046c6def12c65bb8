#include "report.hpp"

namespace opmux::python {
namespace {

const ScopeObject::Content* outer_of(const ScopeObject::Content& scope) {
  return content_of(scope.outer.get());
}

Reference dictionary_of(const std::string& op, const CallReport& report) {
  return Reference::steal(Py_BuildValue(
      "{s:s,s:s,s:O,s:s,s:O,s:K,s:K,s:K,s:s,s:s,s:K}", "op", op.c_str(), "implementation",
      report.implementation.c_str(), "fell_back", report.fell_back ? Py_True : Py_False, "reason",
      report.reason.c_str(), "cached", report.cached ? Py_True : Py_False, "generation",
      static_cast<unsigned long long>(report.generation), "select_ns",
      static_cast<unsigned long long>(report.select_ns), "run_ns",
      static_cast<unsigned long long>(report.run_ns), "outcome",
      std::string(name_of(report.outcome)).c_str(), "transforms", report.transforms.c_str(),
      "transform_ns", static_cast<unsigned long long>(report.transform_ns)));
}

/// Saves the exception of a failed call during a block and restores it afterwards.
class ExceptionAside {
 public:
  ExceptionAside() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~ExceptionAside() {
    if (type_ != nullptr) PyErr_Restore(type_, value_, trace_);
  }
  ExceptionAside(const ExceptionAside&) = delete;
  ExceptionAside& operator=(const ExceptionAside&) = delete;

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

}  // namespace

PyObject* hand_over(const std::string& op, const CallReport& report,
                    const ScopeObject::Content& scope, PyObject* result) {
  const ExceptionAside aside;
  const Reference made = dictionary_of(op, report);
  for (const auto* at = &scope; made && at != nullptr; at = outer_of(*at)) {
    if (at->reports && PyList_Append(at->reports.get(), made.get()) != 0) PyErr_Clear();
  }
  if (!made) PyErr_Clear();
  return result;
}

}  // namespace opmux::python
