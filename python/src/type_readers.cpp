#include "type_readers.hpp"

#include <memory>
#include <unordered_map>

#include "torch_getters.hpp"

namespace opmux::python {
namespace {

TorchNames torch;
TorchGetters getters;
const opmux_reader* torch_reader = nullptr;

struct Names {
  PyObject* exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  PyObject* protocol = PyUnicode_InternFromString("__dlpack__");
  PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* is_neg = PyUnicode_InternFromString("is_neg");
  PyObject* is_inference = PyUnicode_InternFromString("is_inference");
  PyObject* in_mode = PyUnicode_InternFromString("_is_in_torch_dispatch_mode");
  PyObject* version = PyUnicode_InternFromString("_version");
};
const Names& names() {
  static const Names all;
  return all;
}

using Known = std::unordered_map<PyTypeObject*, std::unique_ptr<TypeReader>>;
Known& known() {
  static auto* const all = new Known;
  return *all;
}

const ExchangeApi* exchange_of(PyTypeObject* type) {
  const Reference capsule =
      Reference::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), names().exchange));
  void* api = capsule ? PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api") : nullptr;
  PyErr_Clear();
  const auto* exchange = static_cast<const ExchangeApi*>(api);
  const bool usable = exchange != nullptr && exchange->version.major == kDlpackMajor &&
                      exchange->borrow_from_object != nullptr;
  return usable ? exchange : nullptr;
}

/// Imports opmux._torch_types once torch is imported, which may be before or after opmux, or never.
void look_for_torch() {
  if (torch.tensor != nullptr) return;
  PyObject* const modules = PyImport_GetModuleDict();
  if (PyDict_GetItemString(modules, "torch") == nullptr) return;
  const Reference learnt = Reference::steal(PyImport_ImportModule("opmux._torch_types"));
  if (!learnt) PyErr_Clear();
}

TypeReader classify(PyTypeObject* type) {
  TypeReader how{.type = type};
  auto* const tensor = reinterpret_cast<PyTypeObject*>(torch.tensor);
  how.parameter = tensor != nullptr && type == reinterpret_cast<PyTypeObject*>(torch.parameter);
  how.torch = how.parameter || (tensor != nullptr && type == tensor);
  const bool derived = tensor != nullptr && PyType_IsSubtype(type, tensor) != 0;
  how.exchange = exchange_of(type);
  if (derived && !how.torch) {
    how.path = ReadPath::reroute;
  } else if (how.torch && torch_reader != nullptr) {
    how.path = ReadPath::module;
    how.reader = torch_reader;
  } else if (how.exchange != nullptr) {
    how.path = ReadPath::exchange;
  } else if (PyObject_HasAttr(reinterpret_cast<PyObject*>(type), names().protocol) != 0) {
    how.path = ReadPath::protocol;
  }
  return how;
}

void forget_types() {
  ++readers_generation;
  for (const auto& [type, how] : known()) *how = classify(type);
}

bool says_yes(const Reference& answer) {
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
}

bool has_true_attribute(PyObject* object, PyObject* name) {
  return says_yes(Reference::steal(PyObject_GetAttr(object, name)));
}

/// Only the imaginary part of a conjugate has the negative bit, and it is never dense. This check
/// avoids calling is_neg() for most tensors.
bool may_be_negated(const opmux_tensor& tensor) {
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.strides[i] == 1) return false;
  }
  return tensor.ndim > 0;
}

bool method_says_yes(PyObject* object, PyObject* name) {
  return says_yes(Reference::steal(PyObject_CallMethodNoArgs(object, name)));
}

/// Calls torch's C functions directly, without going through the interpreter.
bool function_says_yes(PyObject* function) {
  if (function == nullptr) return false;
  if (PyCFunction_CheckExact(function) != 0 && PyCFunction_GET_FLAGS(function) == METH_NOARGS) {
    PyObject* const self = PyCFunction_GET_SELF(function);
    return says_yes(Reference::steal(PyCFunction_GET_FUNCTION(function)(self, nullptr)));
  }
  return says_yes(Reference::steal(PyObject_CallNoArgs(function)));
}

uint64_t version_of(PyObject* object) {
  const Reference version = Reference::steal(PyObject_GetAttr(object, names().version));
  const unsigned long long number =
      version ? PyLong_AsUnsignedLongLong(version.get()) + 1 : 0;  // inference tensors have none
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return 0;
  }
  return number;
}

/// Reads a cheap flag first. The flag is also set while a mode's handler runs, so the modes are
/// counted too.
bool is_in_dispatch_mode() {
  if (torch.mode_flags == nullptr) return false;
  if (PyDict_GetItemWithError(torch.mode_flags, names().in_mode) != Py_True) return false;
  const Reference count = Reference::steal(PyObject_CallNoArgs(torch.count_modes));
  const long modes = count ? PyLong_AsLong(count.get()) : 0;
  PyErr_Clear();
  return modes > 0;
}

/// Checks for properties that the DLPack exchange ignores but that a call must refuse.
int32_t check_torch(PyObject* object, TorchModes& modes, const opmux_tensor& tensor) {
  if (modes.dispatch()) return OPMUX_READ_MODE;
  if (modes.grad() && has_true_attribute(object, names().requires_grad)) return OPMUX_READ_GRAD;
  if (may_be_negated(tensor) && method_says_yes(object, names().is_neg)) return OPMUX_READ_LAZY;
  return OPMUX_READ_OK;
}

void fill(const opmux_tensor& tensor, opmux_read_tensor& out) {
  out.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  out.shape = tensor.shape;
  out.strides = tensor.strides;
  out.ndim = tensor.ndim;
  out.dtype = static_cast<uint32_t>(tensor.dtype.code) |
              static_cast<uint32_t>(tensor.dtype.bits) << 8 |
              static_cast<uint32_t>(tensor.dtype.lanes) << 16;
  out.device_type = tensor.device.type;
  out.device_id = tensor.device.id;
  out.locked = 0;
}

int32_t read_exchanged(const TypeReader& how, PyObject* object, TorchModes& modes,
                       opmux_read_tensor& out) {
  opmux_tensor tensor;
  if (how.exchange->borrow_from_object(object, &tensor) != 0) return OPMUX_READ_ERROR;
  fill(tensor, out);
  out.version = how.parameter ? version_of(object) : 0;
  return how.torch ? check_torch(object, modes, tensor) : OPMUX_READ_OK;
}

/// Reads a tensor that the native reader does not know, such as one in memory of a device.
int32_t read_elsewhere(const TypeReader& how, PyObject* object, TorchModes& modes,
                       opmux_read_tensor& out) {
  const int32_t outcome = read_exchanged(how, object, modes, out);
  if (outcome == OPMUX_READ_OK) {
    out.locked = !modes.inference() && method_says_yes(object, names().is_inference) ? 1 : 0;
  }
  if (outcome != OPMUX_READ_ERROR || PyErr_ExceptionMatches(PyExc_Exception) == 0) return outcome;
  PyErr_Clear();  // it has no memory, as on the device `meta`
  return OPMUX_READ_PLACE;
}

const char* name_of(ReadPath path) {
  switch (path) {
    case ReadPath::module: return "module";
    case ReadPath::exchange: return "exchange";
    case ReadPath::protocol: return "protocol";
    case ReadPath::reroute: return "reroute";
    case ReadPath::none: break;
  }
  return "none";
}

std::string detail_of(const TypeReader& how) {
  switch (how.path) {
    case ReadPath::module: return how.reader->name;
    case ReadPath::exchange:
      return "DLPack " + std::to_string(how.exchange->version.major) + "." +
             std::to_string(how.exchange->version.minor);
    case ReadPath::protocol: return "__dlpack__";
    case ReadPath::reroute: return "through torch.ops";
    case ReadPath::none: break;
  }
  return "not a tensor";
}

std::string full_name(PyTypeObject* type) {
  const Reference module =
      Reference::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const char* text = module ? PyUnicode_AsUTF8(module.get()) : nullptr;
  PyErr_Clear();
  const std::string own = type->tp_name;
  if (text == nullptr || own.find('.') != std::string::npos) return own;
  return std::string(text) + "." + own;
}

}  // namespace

uint64_t readers_generation = 0;
bool may_capture = false;

bool knows_torch() {
  if (torch.tensor == nullptr) look_for_torch();
  return torch.tensor != nullptr;
}

const opmux_reader* torch_reader_in_use() { return torch_reader; }

const TypeReader& reader_of(PyTypeObject* type) {
  look_for_torch();
  std::unique_ptr<TypeReader>& how = known()[type];
  if (how == nullptr) {
    Py_INCREF(type);  // so that the address is not reused for another type
    how = std::make_unique<TypeReader>(classify(type));
  }
  return *how;
}

void learn_torch(const TorchNames& names) {
  for (PyObject* const object :
       {names.tensor, names.parameter, names.is_grad_enabled, names.is_inference_mode_enabled,
        names.mode_flags, names.count_modes, names.is_deterministic, names.is_any_autocast_enabled,
        names.is_capturing}) {
    Py_XINCREF(object);
  }
  torch = names;
  may_capture = torch.is_capturing != nullptr && torch.is_capturing != Py_None;
  getters.find();
  forget_types();
}

void use_torch_reader(const opmux_reader* reader) {
  torch_reader = reader;
  forget_types();
}

int32_t read_borrowed(const TypeReader& how, PyObject* object, TorchModes& modes,
                      opmux_read_tensor& out) {
  if (how.path == ReadPath::module) [[likely]] {
    const int32_t outcome = how.reader->read(object, &out);
    if (outcome != OPMUX_READ_PLACE || how.exchange == nullptr) [[likely]]
      return outcome;
    return read_elsewhere(how, object, modes, out);
  }
  return read_exchanged(how, object, modes, out);
}

bool borrow_plain(const TypeReader& how, PyObject* object, TorchModes& modes, opmux_tensor& out) {
  if (how.exchange->borrow_from_object(object, &out) != 0) {
    PyErr_Clear();  // read_borrowed() finds the cause
    return false;
  }
  return !how.torch || check_torch(object, modes, out) == OPMUX_READ_OK;
}

bool is_locked(const TypeReader& how, PyObject* object, TorchModes& modes) {
  if (!how.torch || how.path != ReadPath::exchange || modes.inference()) return false;
  return method_says_yes(object, names().is_inference);
}

bool read_layout(const TypeReader& how, PyObject* object, opmux_read_tensor& out) {
  if (how.path == ReadPath::module) {
    const int32_t outcome = how.reader->read(object, &out);
    return outcome == OPMUX_READ_OK || outcome == OPMUX_READ_GRAD || outcome == OPMUX_READ_LAZY ||
           outcome == OPMUX_READ_MODE;
  }
  if (how.path != ReadPath::exchange) return false;
  opmux_tensor tensor;
  if (how.exchange->borrow_from_object(object, &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  fill(tensor, out);
  return true;
}

bool TorchModes::grad() {
  if (grad_ == Answer::unknown) {
    // Inference mode records nothing, even if is_grad_enabled() is true.
    const bool records = !inference() && grad_mode();
    grad_ = records ? Answer::yes : Answer::no;
  }
  return grad_ == Answer::yes;
}

bool TorchModes::inference() {
  if (inference_ == Answer::unknown) {
    const bool on =
        getters.found() ? getters.inference() : function_says_yes(torch.is_inference_mode_enabled);
    inference_ = on ? Answer::yes : Answer::no;
  }
  return inference_ == Answer::yes;
}

bool TorchModes::dispatch() {
  if (dispatch_ == Answer::unknown) {
    const bool on = getters.found() ? getters.dispatch() : is_in_dispatch_mode();
    dispatch_ = on ? Answer::yes : Answer::no;
  }
  return dispatch_ == Answer::yes;
}

bool TorchModes::grad_mode() {
  return getters.found() ? getters.grad() : function_says_yes(torch.is_grad_enabled);
}
bool TorchModes::deterministic() {
  return getters.found() ? getters.deterministic() : function_says_yes(torch.is_deterministic);
}
bool TorchModes::autocast() {
  return getters.found() ? getters.autocast() : function_says_yes(torch.is_any_autocast_enabled);
}
bool TorchModes::capturing() { return may_capture && function_says_yes(torch.is_capturing); }

std::vector<TypeReading> readings() {
  std::vector<TypeReading> all;
  for (const auto& [type, how] : known()) {
    all.push_back({full_name(type), name_of(how->path), detail_of(*how)});
  }
  return all;
}

}  // namespace opmux::python
