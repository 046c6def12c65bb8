// Reads torch's tensors in place. Compiled against one version of torch by `python -m opmux.torch
// build`; never part of a wheel.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/version.h>

#include <opmux/reader.h>

namespace {

struct DTypes {
  uint32_t packed[static_cast<size_t>(c10::ScalarType::NumOptions)] = {};

  DTypes() {
    set(c10::ScalarType::Double, 2, 64);
    set(c10::ScalarType::Float, 2, 32);
    set(c10::ScalarType::Half, 2, 16);
    set(c10::ScalarType::BFloat16, 4, 16);
    set(c10::ScalarType::Long, 0, 64);
    set(c10::ScalarType::Int, 0, 32);
    set(c10::ScalarType::Short, 0, 16);
    set(c10::ScalarType::Char, 0, 8);
    set(c10::ScalarType::Byte, 1, 8);
    set(c10::ScalarType::Bool, 6, 8);
    set(c10::ScalarType::Float8_e4m3fn, 10, 8);
  }
  void set(c10::ScalarType type, uint32_t code, uint32_t bits) {
    packed[static_cast<size_t>(type)] = code | bits << 8 | 1u << 16;
  }
};
const DTypes dtypes;

constexpr c10::DispatchKeySet kLazy({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
constexpr c10::DispatchKeySet kForeign({c10::DispatchKey::Python,
                                        c10::DispatchKey::FuncTorchBatched,
                                        c10::DispatchKey::FuncTorchGradWrapper,
                                        c10::DispatchKey::Functionalize});
constexpr int32_t kCpu = 1;

uint64_t version_of(c10::TensorImpl& tensor) {
  if (tensor.is_inference()) return 0;
  return static_cast<uint64_t>(tensor.version_counter().current_version()) + 1;
}

bool is_watched(const c10::TensorImpl& tensor) {
  return tensor.requires_grad() && c10::GradMode::is_enabled();
}

int32_t read(PyObject* object, opmux_read_tensor* out) {
  const at::Tensor& tensor = THPVariable_Unpack(reinterpret_cast<THPVariable*>(object));
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const c10::DispatchKeySet keys = impl.key_set();
  if (keys.has_any(kForeign)) return OPMUX_READ_REROUTE;
  if (!keys.has_backend(c10::BackendComponent::CPUBit) || impl.layout() != c10::kStrided) {
    return is_watched(impl) ? OPMUX_READ_REROUTE : OPMUX_READ_PLACE;
  }
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  out->data = const_cast<void*>(impl.data());
  out->shape = sizes.data();
  out->strides = strides.data();
  out->ndim = static_cast<int32_t>(sizes.size());
  out->dtype = dtypes.packed[static_cast<size_t>(c10::typeMetaToScalarType(impl.dtype()))];
  out->device_type = kCpu;
  out->device_id = 0;
  out->version = version_of(impl);
  if (out->dtype == 0) return OPMUX_READ_PLACE;
  if (is_watched(impl)) return OPMUX_READ_GRAD;
  return keys.has_any(kLazy) ? OPMUX_READ_LAZY : OPMUX_READ_OK;
}

const opmux_reader reader = {OPMUX_READER_VERSION, 0, "torch " TORCH_VERSION, read};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_opmux_torch_reader",
                          nullptr,
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__opmux_torch_reader() {
  PyObject* const module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  auto* const untyped = const_cast<opmux_reader*>(&reader);
  PyObject* const capsule = PyCapsule_New(untyped, OPMUX_READER_CAPSULE, nullptr);
  if (capsule == nullptr || PyModule_AddObject(module, "reader", capsule) != 0) {
    Py_XDECREF(capsule);
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
