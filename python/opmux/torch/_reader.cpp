// Reads torch tensors in place through torch's C++ API. `python -m opmux.torch build` compiles it
// against the installed torch; wheels contain only the source.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/version.h>

#include <opmux/c/policy.h>
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
    set(c10::ScalarType::Float8_e4m3fnuz, 11, 8);
    set(c10::ScalarType::Float8_e5m2, 12, 8);
    set(c10::ScalarType::Float8_e5m2fnuz, 13, 8);
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
    set(c10::ScalarType::Float4_e2m1fn_x2, 17, 4, 2);
#endif
  }
  void set(c10::ScalarType type, uint32_t code, uint32_t bits, uint32_t lanes = 1) {
    packed[static_cast<size_t>(type)] = code | bits << 8 | lanes << 16;
  }
};
const DTypes dtypes;

using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DispatchKeySet kLazy({DispatchKey::Conjugate, DispatchKey::Negative});
constexpr DispatchKeySet kForeign({DispatchKey::Python, DispatchKey::FuncTorchBatched,
                                   DispatchKey::FuncTorchGradWrapper, DispatchKey::Functionalize,
                                   DispatchKey::ZeroTensor});
constexpr DispatchKeySet kModes({DispatchKey::Python, DispatchKey::Functionalize});
constexpr DispatchKeySet kAutograd(DispatchKey::AutogradFunctionality);
constexpr DispatchKeySet kVersions(DispatchKey::ADInplaceOrView);
/// Strided tensors in CPU memory.
constexpr DispatchKeySet kPlain(DispatchKey::CPU);
constexpr DispatchKeySet kLookedAt = kForeign | kLazy | kPlain;
constexpr int32_t kCpu = 1;

bool has(DispatchKeySet keys, DispatchKeySet any) {
  return (keys.raw_repr() & any.raw_repr()) != 0;
}

/// The keys that torch excludes while no autocast is enabled.
const DispatchKeySet kAutocast = c10::default_excluded_set & c10::autocast_dispatch_keyset;

const at::Context& context = at::globalContext();

/// The torch modes around a call, read once for all of its tensors: whether a dispatch mode is
/// active, whether autograd records, and whether inference tensors may not be written to.
class Around {
 public:
  const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  const DispatchKeySet excluded;
  const bool mode, locks, records;

  Around() : Around(c10::impl::tls_local_dispatch_key_set()) {}

  /// The same as ambient facts (OPMUX_AMBIENT_*).
  uint32_t facts() const {
    uint32_t facts = autograd.get_inference_mode() ? OPMUX_AMBIENT_INFERENCE : 0;
    if (autograd.get_grad_mode()) facts |= OPMUX_AMBIENT_GRAD;
    if (context.deterministicAlgorithms()) facts |= OPMUX_AMBIENT_DETERMINISTIC;
    if (!excluded.has_all(kAutocast)) facts |= OPMUX_AMBIENT_AUTOCAST;
    return facts;
  }

 private:
  explicit Around(const c10::impl::LocalDispatchKeySet& local)
      : excluded(local.excluded_),
        mode(has(active(local), kModes)),
        locks(has(active(local), kVersions)),
        records(!has(excluded, kAutograd) && autograd.get_grad_mode()) {}

  static DispatchKeySet active(const c10::impl::LocalDispatchKeySet& local) {
    return {DispatchKeySet::RAW, local.included_.raw_repr() & ~local.excluded_.raw_repr()};
  }
};

uint32_t ambient() { return Around().facts(); }

c10::TensorImpl& impl_of(PyObject* object) {
  return *THPVariable_Unpack(reinterpret_cast<THPVariable*>(object)).unsafeGetTensorImpl();
}

uint32_t dtype_of(const c10::TensorImpl& tensor) {
  return dtypes.packed[static_cast<size_t>(c10::typeMetaToScalarType(tensor.dtype()))];
}

/// The tensor's memory; null if it has none. Copies copy-on-write storage first (mutable_data).
void* data_of(const c10::TensorImpl& tensor) {
  c10::StorageImpl* const storage = tensor.unsafe_storage().unsafeGetStorageImpl();
  if (storage == nullptr) return nullptr;
  auto* const bytes = static_cast<char*>(storage->mutable_data());
  return bytes == nullptr
             ? nullptr
             : bytes + tensor.storage_offset() * static_cast<int64_t>(tensor.dtype().itemsize());
}

uint64_t version_of(c10::TensorImpl& tensor) {
  if (tensor.is_inference()) return 0;
  return static_cast<uint64_t>(tensor.version_counter().current_version()) + 1;
}

bool is_locked(DispatchKeySet keys, const Around& around) {
  return around.locks && !has(keys, kVersions | kAutograd);
}

int32_t read_checked(PyObject* object, opmux_read_tensor* out) {
  c10::TensorImpl& impl = impl_of(object);
  const DispatchKeySet keys = impl.key_set();
  const Around around;
  if (has(keys, kForeign)) return OPMUX_READ_REROUTE;
  const bool watched = around.records && impl.requires_grad();
  if (!keys.has_all(kPlain)) return watched ? OPMUX_READ_REROUTE : OPMUX_READ_PLACE;
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  out->data = data_of(impl);
  out->shape = sizes.data();
  out->strides = strides.data();
  out->ndim = static_cast<int32_t>(sizes.size());
  out->dtype = dtype_of(impl);
  out->device_type = kCpu;
  out->device_id = 0;
  out->version = version_of(impl);
  out->locked = is_locked(keys, around) ? 1 : 0;
  if (out->dtype == 0) return OPMUX_READ_PLACE;
  if (around.mode) return OPMUX_READ_MODE;
  if (watched) return OPMUX_READ_GRAD;
  return has(keys, kLazy) ? OPMUX_READ_LAZY : OPMUX_READ_OK;
}

int32_t read(PyObject* object, opmux_read_tensor* out) {
  try {
    return read_checked(object, out);
  } catch (...) {
    return OPMUX_READ_PLACE;
  }
}

bool is_as_before(const opmux_known_tensor& known, const Around& around) {
  const c10::TensorImpl& impl = impl_of(known.object);
  const DispatchKeySet keys = impl.key_set();
  if ((keys.raw_repr() & kLookedAt.raw_repr()) != kPlain.raw_repr()) return false;
  if (around.records && impl.requires_grad()) return false;
  if (known.written != 0 && is_locked(keys, around)) return false;
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  if (sizes.size() != static_cast<size_t>(known.ndim) || dtype_of(impl) != known.dtype) {
    return false;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != known.shape[i] || strides[i] != known.strides[i]) return false;
  }
  void* const data = data_of(impl);
  if (data == nullptr) return false;
  *known.data = data;
  return true;
}

int32_t reread(opmux_known_tensor* all, uint32_t count, uint32_t* state) {
  try {
    const Around around;
    if (around.mode) return 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (!is_as_before(all[i], around)) return 0;
    }
    if (state != nullptr) *state = around.facts();
    return 1;
  } catch (...) {
    return 0;
  }
}

c10::ScalarType type_of(uint32_t dtype) {
  for (size_t i = 0; i < std::size(dtypes.packed); ++i) {
    if (dtypes.packed[i] == dtype) return static_cast<c10::ScalarType>(i);
  }
  return c10::ScalarType::Undefined;
}

PyObject* allocate(const int64_t* shape, int32_t ndim, uint32_t dtype) {
  const c10::ScalarType type = type_of(dtype);
  if (dtype == 0 || type == c10::ScalarType::Undefined) {
    PyErr_SetString(PyExc_TypeError, "torch does not have this dtype");
    return nullptr;
  }
  try {
    const c10::IntArrayRef sizes(shape, static_cast<size_t>(ndim));
    return THPVariable_Wrap(at::Tensor(at::detail::empty_cpu(sizes, type)));
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

const opmux_reader reader = {
    OPMUX_READER_VERSION, 0, "torch " TORCH_VERSION, read, reread, allocate, ambient};

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
