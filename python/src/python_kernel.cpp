#include "python_kernel.hpp"

#include <stdexcept>

#include "borrowed.hpp"
#include "call_record.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "held_types.hpp"

namespace opmux::python {
namespace {

const opmux_arg& argument(const CallFrame& call, size_t i) {
  const opmux_call& c = call.c();
  return *reinterpret_cast<const opmux_arg*>(reinterpret_cast<const char*>(c.args) +
                                             i * c.arg_stride);
}

Reference text_object(const opmux_list& list) {
  return Reference::steal(PyUnicode_FromStringAndSize(static_cast<const char*>(list.data),
                                                      static_cast<Py_ssize_t>(list.size)));
}

Reference ints_object(const opmux_list& list) {
  Reference all = Reference::steal(PyList_New(static_cast<Py_ssize_t>(list.size)));
  const auto* ints = static_cast<const int64_t*>(list.data);
  for (uint64_t i = 0; all && i < list.size; ++i) {
    PyList_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(ints[i]));
  }
  return all;
}

Reference tensors_object(const opmux_list& list) {
  Reference all = Reference::steal(PyList_New(0));
  const auto* tensors = static_cast<const opmux_tensor* const*>(list.data);
  for (uint64_t i = 0; all && i < list.size; ++i) {
    const Reference one = borrowed_tensor(TensorView(*tensors[i]));
    if (!one || PyList_Append(all.get(), one.get()) != 0) return {};
  }
  return all;
}

/// Makes a Python object for an argument that did not come from Python.
Reference object_of(const opmux_arg& arg, const Signature::Parameter& parameter) {
  switch (arg.tag) {
    case OPMUX_ARG_TENSOR: return borrowed_tensor(TensorView(*arg.value.tensor));
    case OPMUX_ARG_I64: return Reference::steal(PyLong_FromLongLong(arg.value.i64));
    case OPMUX_ARG_F64: return Reference::steal(PyFloat_FromDouble(arg.value.f64));
    case OPMUX_ARG_BOOL: return Reference::steal(PyBool_FromLong(arg.value.i64 != 0));
    case OPMUX_ARG_ENUM:
      return Reference::steal(
          PyUnicode_FromString(parameter.words[static_cast<size_t>(arg.value.i64)].c_str()));
    case OPMUX_ARG_STR: return text_object(arg.value.list);
    case OPMUX_ARG_I64_LIST: return ints_object(arg.value.list);
    case OPMUX_ARG_TENSOR_LIST: return tensors_object(arg.value.list);
    default: return Reference::borrow(Py_None);
  }
}

/// Returns the tensor of a constant; Python implementations always get plain tensors.
PyObject* plain_tensor(PyObject* given) {
  const HeldConstant* const held = held_constant(given);
  return held == nullptr ? given : held->tensor.get();
}

/// The names of the keyword arguments of a call, as a tuple; null if there are none. They are
/// interned as those of the function are, so that the interpreter finds them by their address.
PyObject* keywords_of(bool out, bool stream) {
  const auto name = [](const char* text) { return PyUnicode_InternFromString(text); };
  static PyObject* const both = Py_BuildValue("(NN)", name("out"), name("stream"));
  static PyObject* const only_out = Py_BuildValue("(N)", name("out"));
  static PyObject* const only_stream = Py_BuildValue("(N)", name("stream"));
  if (out) return stream ? both : only_out;
  return stream ? only_stream : nullptr;
}

Outcome outcome_of(Code code) {
  const bool outcome = static_cast<int32_t>(code) <= OPMUX_DEVICE_LOST;
  return outcome && code != Code::ok ? static_cast<Outcome>(code) : Outcome::failed;
}

}  // namespace

PythonKernel::PythonKernel(const Operator& op, Reference function, Reference verifier,
                           Reference available, bool takes_stream)
    : slot_(&op.slot()),
      signature_(op),
      function_(std::move(function)),
      verifier_(std::move(verifier)),
      available_(std::move(available)),
      takes_stream_(takes_stream) {
  ++python_kernels;
}

PythonKernel::~PythonKernel() {
  --python_kernels;
  const WithGil gil;
  if (!gil || Py_IsInitialized() == 0) {  // the interpreter ends, so the references are leaked
    static_cast<void>(function_.release());
    static_cast<void>(verifier_.release());
    static_cast<void>(available_.release());
    return;
  }
  function_ = {};
  verifier_ = {};
  available_ = {};
}

/// Whether `call` is the call in `record`: the operator and the memory of every tensor agree.
bool PythonKernel::serves(const CallRecord* record, const CallFrame& call) const {
  if (record == nullptr || record->slot != slot_) return false;
  for (size_t i = 0; i < call.size(); ++i) {
    const opmux_arg& arg = argument(call, i);
    if (arg.tag != OPMUX_ARG_TENSOR) continue;
    if (record->frame->given[i] == nullptr) return false;
    if (record->frame->values[i].tensor->c().data != arg.value.tensor->data) return false;
  }
  return true;
}

Outcome PythonKernel::run(const CallFrame& call) const {
  CallRecord* const record = serves(current_call, call) ? current_call : nullptr;
  const WithGil gil;
  if (!gil) return call.end(Outcome::declined, kInterpreterEnds);
  return run_with_gil(call, record);
}

/// The arguments of the Python function: borrowed from the Python caller, or owned if they had to
/// be created.
struct PythonKernel::Arguments {
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments() {
    for (size_t i = 0; i < made; ++i) Py_XDECREF(own[i]);
  }
  bool lend(PyObject* object) {
    objects[++count] = object;
    return true;
  }
  bool keep(Reference object) {
    own[made++] = object.get();
    return lend(object.release()), objects[count] != nullptr;
  }
  PyObject* last() const { return objects[count]; }

  /// Element 0 is scratch space for vectorcall, the last one is for the stream.
  PyObject* objects[OPMUX_MAX_ARGS + 2];
  PyObject* own[OPMUX_MAX_ARGS + 1];
  size_t count = 0, made = 0;
};

bool PythonKernel::collect(const CallFrame& call, PyObject* const* given, Arguments& args) const {
  const auto has = [&](size_t i) {
    return given != nullptr && given[i] != nullptr && given[i] != Py_None;
  };
  const auto made = [&](size_t i) {
    return object_of(argument(call, i), signature_.parameters()[i]);
  };
  for (const uint8_t i : signature_.inputs()) {
    if (i < call.size() && !(has(i) ? args.lend(plain_tensor(given[i])) : args.keep(made(i))))
      return false;
  }
  const std::vector<uint8_t>& outputs = signature_.outputs();
  if (outputs.empty()) return true;
  if (outputs.size() == 1) {
    return has(outputs[0]) ? args.lend(given[outputs[0]]) : args.keep(made(outputs[0]));
  }
  Reference all = Reference::steal(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; all && i < outputs.size(); ++i) {
    Reference one = has(outputs[i]) ? Reference::borrow(given[outputs[i]]) : made(outputs[i]);
    if (!one) return false;
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), one.release());
  }
  return args.keep(std::move(all));
}

Outcome PythonKernel::run_with_gil(const CallFrame& call, CallRecord* record) const {
  Arguments args;
  const bool has_out = !signature_.outputs().empty();
  if (!collect(call, record == nullptr ? nullptr : record->frame->given, args)) {
    return end(call, {}, nullptr, record);
  }
  const size_t positional = args.count - (has_out ? 1 : 0);
  PyObject* const out = has_out ? args.last() : nullptr;
  if (takes_stream_ && !args.keep(Reference::steal(PyLong_FromVoidPtr(call.stream())))) {
    return end(call, {}, nullptr, record);
  }
  const Reference result = Reference::steal(guarded([&] {
    return PyObject_Vectorcall(function_.get(), args.objects + 1,
                               positional | PY_VECTORCALL_ARGUMENTS_OFFSET,
                               keywords_of(has_out, takes_stream_));
  }));
  return end(call, result, out, record);
}

Outcome PythonKernel::end(const CallFrame& call, const Reference& result, PyObject* out,
                          CallRecord* record) const {
  if (result.get() == Py_None || (result && result.get() == out)) return Outcome::ok;
  if (result.get() == Py_NotImplemented) {
    return call.end(Outcome::declined, "returned NotImplemented");
  }
  if (result) {
    return call.end(Outcome::failed, std::string("returned a ") + Py_TYPE(result.get())->tp_name +
                                         " instead of writing to out");
  }
  Caught caught = catch_exception();
  const bool stops = PyErr_GivenExceptionMatches(caught.exception.get(), PyExc_Exception) == 0;
  if (record != nullptr) {
    record->raised = std::move(caught.exception);
    record->stopped |= stops;
  }
  return call.end(outcome_of(caught.code), caught.text);
}

std::string refusal_in(const Reference& answer, const char* what) {
  if (!answer) throw std::runtime_error(catch_exception().text);
  if (answer.get() == Py_None) return "";
  const char* const text =
      PyUnicode_Check(answer.get()) != 0 ? PyUnicode_AsUTF8(answer.get()) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    throw std::runtime_error(std::string(what) + " returned neither None nor a str");
  }
  return *text == 0 ? "no reason given" : text;
}

std::string PythonKernel::verify(const Facts& facts) const {
  const WithGil gil;
  if (!gil) throw std::runtime_error(kInterpreterEnds);
  const Reference view = facts_view(facts);
  const Reference answer = view ? call_with(verifier_.get(), view.get()) : Reference();
  end_facts_view(view);
  return refusal_in(answer, "the verifier");
}

std::string PythonKernel::why_unavailable() const {
  const WithGil gil;
  if (!gil) throw std::runtime_error(kInterpreterEnds);
  const Reference answer =
      Reference::steal(guarded([&] { return PyObject_CallNoArgs(available_.get()); }));
  return refusal_in(answer, "the probe");
}

}  // namespace opmux::python
