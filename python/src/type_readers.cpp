#include "type_readers.hpp"

#include <memory>
#include <unordered_map>

namespace opmux::python {
namespace {

/// What is known of torch; types and functions are kept for good.
struct Torch {
  PyTypeObject* tensor = nullptr;
  PyTypeObject* parameter = nullptr;
  PyObject* is_grad_enabled = nullptr;
  const opmux_reader* reader = nullptr;
};
Torch torch;

struct Names {
  PyObject* exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  PyObject* protocol = PyUnicode_InternFromString("__dlpack__");
  PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* is_neg = PyUnicode_InternFromString("is_neg");
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

/// torch may be imported before or after opmux, or never.
void look_for_torch() {
  if (torch.tensor != nullptr) return;
  PyObject* const modules = PyImport_GetModuleDict();
  if (PyDict_GetItemString(modules, "torch") == nullptr) return;
  const Reference learnt = Reference::steal(PyImport_ImportModule("opmux._torch_types"));
  if (!learnt) PyErr_Clear();
}

TypeReader classify(PyTypeObject* type) {
  TypeReader how{.type = type};
  how.torch = torch.tensor != nullptr && (type == torch.tensor || type == torch.parameter);
  how.parameter = how.torch && type == torch.parameter;
  const bool derived = torch.tensor != nullptr && PyType_IsSubtype(type, torch.tensor) != 0;
  how.exchange = exchange_of(type);
  if (derived && !how.torch) {
    how.path = ReadPath::reroute;
  } else if (how.torch && torch.reader != nullptr) {
    how.path = ReadPath::module;
    how.reader = torch.reader;
  } else if (how.exchange != nullptr) {
    how.path = ReadPath::exchange;
  } else if (PyObject_HasAttr(reinterpret_cast<PyObject*>(type), names().protocol) != 0) {
    how.path = ReadPath::protocol;
  }
  return how;
}

void forget_types() {
  for (const auto& [type, how] : known()) *how = classify(type);
}

bool has_true_attribute(PyObject* object, PyObject* name) {
  const Reference value = Reference::steal(PyObject_GetAttr(object, name));
  if (!value) PyErr_Clear();
  return value.get() == Py_True;
}

/// Values with the negative bit come from the imaginary part of a conjugate, which is never dense.
bool may_be_negated(const opmux_tensor& tensor) {
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.strides[i] == 1) return false;
  }
  return tensor.ndim > 0;
}

bool is_negated(PyObject* object) {
  const Reference answer = Reference::steal(PyObject_CallMethodNoArgs(object, names().is_neg));
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
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

/// What the exchange lets through and a call must not take.
int32_t check_torch(PyObject* object, GradMode& grad, const opmux_tensor& tensor) {
  if (grad.enabled() && has_true_attribute(object, names().requires_grad)) return OPMUX_READ_GRAD;
  if (may_be_negated(tensor) && is_negated(object)) return OPMUX_READ_LAZY;
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
}

int32_t read_exchanged(const TypeReader& how, PyObject* object, GradMode& grad,
                       opmux_read_tensor& out) {
  opmux_tensor tensor;
  if (how.exchange->borrow_from_object(object, &tensor) != 0) return OPMUX_READ_ERROR;
  fill(tensor, out);
  out.version = how.parameter ? version_of(object) : 0;
  return how.torch ? check_torch(object, grad, tensor) : OPMUX_READ_OK;
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
  return "no tensor";
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

const TypeReader& reader_of(PyTypeObject* type) {
  look_for_torch();
  std::unique_ptr<TypeReader>& how = known()[type];
  if (how == nullptr) {
    Py_INCREF(type);  // its address must not come to mean another one
    how = std::make_unique<TypeReader>(classify(type));
  }
  return *how;
}

void learn_torch(PyObject* tensor_type, PyObject* parameter_type, PyObject* is_grad_enabled) {
  Py_INCREF(tensor_type);
  Py_INCREF(parameter_type);
  Py_INCREF(is_grad_enabled);
  torch.tensor = reinterpret_cast<PyTypeObject*>(tensor_type);
  torch.parameter = reinterpret_cast<PyTypeObject*>(parameter_type);
  torch.is_grad_enabled = is_grad_enabled;
  forget_types();
}

void use_torch_reader(const opmux_reader* reader) {
  torch.reader = reader;
  forget_types();
}

int32_t read_borrowed(const TypeReader& how, PyObject* object, GradMode& grad,
                      opmux_read_tensor& out) {
  if (how.path == ReadPath::module) [[likely]]
    return how.reader->read(object, &out);
  return read_exchanged(how, object, grad, out);
}

bool read_layout(const TypeReader& how, PyObject* object, opmux_read_tensor& out) {
  if (how.path == ReadPath::module) {
    const int32_t outcome = how.reader->read(object, &out);
    return outcome == OPMUX_READ_OK || outcome == OPMUX_READ_GRAD || outcome == OPMUX_READ_LAZY;
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

bool GradMode::enabled() {
  if (answer_ == Answer::unknown) {
    const Reference answer = Reference::steal(PyObject_CallNoArgs(torch.is_grad_enabled));
    if (!answer) PyErr_Clear();
    answer_ = answer.get() == Py_True ? Answer::yes : Answer::no;
  }
  return answer_ == Answer::yes;
}

std::vector<TypeReading> readings() {
  std::vector<TypeReading> all;
  for (const auto& [type, how] : known()) {
    all.push_back({full_name(type), name_of(how->path), detail_of(*how)});
  }
  return all;
}

}  // namespace opmux::python
