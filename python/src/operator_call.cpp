#include "operator_call.hpp"

#include "call_record.hpp"
#include "engine_call.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace opmux::python {

thread_local constinit CallRecord* current_call __attribute__((tls_model("initial-exec"))) =
    nullptr;
std::atomic<int> python_kernels{0};
int64_t release_gil_from = 16384;

Hooks& hooks() {
  static auto* const all = new Hooks;
  return *all;
}

namespace {

PyObject* call_function(PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* keywords) {
  return operator_of(self)->call(args, count, keywords);
}

}  // namespace

OperatorCall::OperatorCall(Reference runtime_object, HeldRuntime& held, Operator op)
    : runtime_object_(std::move(runtime_object)), held_(&held), op_(op), signature_(op) {
  doc_ = signature_.text() + "\n--\n\n" + op_.schema();
  method_ = {signature_.name().c_str(), as_method(call_function), METH_FASTCALL | METH_KEYWORDS,
             doc_.c_str()};
}

OperatorCall::~OperatorCall() {
  while (idle_ != nullptr) {
    ArgumentFrame* const frame = idle_;
    idle_ = frame->next_idle;
    delete frame;
  }
}

PyObject* OperatorCall::function(PyObject* self) {
  return PyCFunction_NewEx(&method_, self, nullptr);
}

PyObject* OperatorCall::call(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const Lease frame(*this);
  const ArgumentFrame::Converted converted = frame->take(args, count, keywords);
  if (converted != ArgumentFrame::Converted::ok) [[unlikely]] {
    if (converted == ArgumentFrame::Converted::failed) return nullptr;
    return reroute(*frame, args, count, keywords);
  }
  if (frame->lacks_output()) return call_allocating(*frame);
  return call_engine(*this, *frame);
}

PyObject* OperatorCall::call_allocating(ArgumentFrame& frame) {
  std::vector<Reference> made;
  return allocate_outputs(op_, frame, made) ? call_engine(*this, frame) : nullptr;
}

PyObject* OperatorCall::reroute(const ArgumentFrame& frame, PyObject* const* args, Py_ssize_t count,
                                PyObject* keywords) const {
  if (!hooks().reroute) {
    frame.raise_not_taken();
    return nullptr;
  }
  const Reference positional = Reference::steal(PyTuple_New(count));
  const Reference named = Reference::steal(PyDict_New());
  if (!positional || !named) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(positional.get(), i, args[i]);
  }
  for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i) {
    PyDict_SetItem(named.get(), PyTuple_GET_ITEM(keywords, i), args[count + i]);
  }
  return guarded([&] {
    return PyObject_CallFunction(hooks().reroute.get(), "sOO", signature_.name().c_str(),
                                 positional.get(), named.get());
  });
}

Result<Plan> OperatorCall::bind(ArgumentFrame& frame, bool for_capture) const {
  return detail::bind(op_.slot(), frame.site, frame.values, for_capture);
}

Result<std::string> OperatorCall::decide(ArgumentFrame& frame) const {
  return detail::decide(op_.slot(), frame.site, frame.values);
}

Explanation OperatorCall::explain(ArgumentFrame& frame) const {
  return detail::explain(op_.slot(), frame.site, frame.values);
}

PyObject* outputs_of(const ArgumentFrame& frame) {
  const std::vector<uint8_t>& outputs = frame.signature().outputs();
  if (outputs.empty()) Py_RETURN_NONE;
  if (outputs.size() == 1) {
    PyObject* const output = frame.given[outputs[0]];
    Py_INCREF(output == nullptr ? Py_None : output);
    return output == nullptr ? Py_None : output;
  }
  PyObject* const all = PyTuple_New(static_cast<Py_ssize_t>(outputs.size()));
  for (size_t i = 0; all != nullptr && i < outputs.size(); ++i) {
    PyObject* const output = frame.given[outputs[i]] == nullptr ? Py_None : frame.given[outputs[i]];
    Py_INCREF(output);
    PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), output);
  }
  return all;
}

}  // namespace opmux::python
