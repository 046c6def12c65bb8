#include "tensor_slot.hpp"

#include "gil.hpp"

namespace opmux::python {
namespace {

constexpr const char* kOldCapsule = "dltensor";
constexpr const char* kVersionedCapsule = "dltensor_versioned";

/// Calls `__dlpack__` for a versioned capsule, or for an unversioned one if the type does not
/// accept max_version.
Reference capsule_of(PyObject* object) {
  static PyObject* const method = PyUnicode_InternFromString("__dlpack__");
  static PyObject* const keyword = Py_BuildValue("(s)", "max_version");
  static PyObject* const version = Py_BuildValue("(ii)", 1, 3);
  PyObject* const arguments[2] = {object, version};
  Reference capsule = Reference::steal(guarded([&] {
    return PyObject_VectorcallMethod(method, arguments, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                     keyword);
  }));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Clear();
    capsule = Reference::steal(guarded([&] { return PyObject_CallMethodNoArgs(object, method); }));
  }
  return capsule;
}

/// Whether the tensor of a capsule can be read. Sets an exception if not.
bool is_readable(const opmux_tensor& tensor) {
  const char* const problem =
      tensor.ndim < 0                              ? "a negative number of dimensions"
      : tensor.ndim > 0 && tensor.shape == nullptr ? "dimensions but no shape"
      : tensor.byte_offset > PTRDIFF_MAX           ? "an offset beyond the address space"
                                                   : nullptr;
  if (problem != nullptr) PyErr_Format(PyExc_BufferError, "its DLPack capsule has %s", problem);
  return problem == nullptr;
}

opmux_read_tensor read_of(const opmux_tensor& tensor) {
  opmux_read_tensor read{};
  read.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  read.shape = tensor.shape;
  read.strides = tensor.strides;
  read.ndim = tensor.ndim;
  read.dtype = DType{tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes}.packed();
  read.device_type = tensor.device.type;
  read.device_id = tensor.device.id;
  return read;
}

}  // namespace

void TensorSlot::put_anew(const opmux_read_tensor& read) {
  const auto rank = static_cast<size_t>(read.ndim);
  const std::span<const int64_t> shape(read.shape, rank);
  const std::span<const int64_t> strides(read.strides, read.strides == nullptr ? 0 : rank);
  view_ = TensorView(read.data, DType::from_packed(read.dtype), shape, strides,
                     {read.device_type, read.device_id});
  elements_ = view_.elements();
  ++layout_;
  overlaps_ = false;
  for (int i = 0; i < view_.rank(); ++i) overlaps_ |= view_.stride(i) == 0 && view_.dim(i) > 1;
}

bool TensorSlot::repeats(PyObject* object, const TypeReader& how, TorchModes& modes, bool written) {
  opmux_tensor read;
  if (Py_TYPE(object) != how.type || !borrow_plain(how, object, modes, read)) return false;
  const opmux_tensor& own = view_.c();
  bool same = own.ndim == read.ndim && own.device.type == read.device.type &&
              own.device.id == read.device.id && own.dtype.code == read.dtype.code &&
              own.dtype.bits == read.dtype.bits && own.dtype.lanes == read.dtype.lanes &&
              read.strides != nullptr;
  for (int32_t i = 0; same && i < own.ndim; ++i) {
    same = own.shape[i] == read.shape[i] && own.strides[i] == read.strides[i];
  }
  if (!same || (read.data == nullptr && elements_ != 0)) return false;
  if (written && is_locked(how, object, modes)) return false;
  view_.set_data(static_cast<char*>(read.data) + read.byte_offset);
  return true;
}

int32_t TensorSlot::read_otherwise(PyObject* object) {
  if (how_->path == ReadPath::reroute) return OPMUX_READ_REROUTE;
  if (how_->path == ReadPath::none) return OPMUX_READ_PLACE;
  return read_protocol(object);
}

int32_t TensorSlot::read_protocol(PyObject* object) {
  Reference capsule = capsule_of(object);
  if (!capsule) return OPMUX_READ_ERROR;
  version_ = 0;
  locked_ = false;
  if (PyCapsule_IsValid(capsule.get(), kVersionedCapsule) != 0) {
    const auto* managed =
        static_cast<const VersionedTensor*>(PyCapsule_GetPointer(capsule.get(), kVersionedCapsule));
    if (managed->version.major != kDlpackMajor) return OPMUX_READ_PLACE;
    if (!is_readable(managed->tensor)) return OPMUX_READ_ERROR;
    read_only_ = (managed->flags & kDlpackReadOnly) != 0;
    put(read_of(managed->tensor));
  } else {
    const auto* managed =
        static_cast<const ManagedTensor*>(PyCapsule_GetPointer(capsule.get(), kOldCapsule));
    if (managed == nullptr || !is_readable(managed->tensor)) return OPMUX_READ_ERROR;
    read_only_ = false;
    put(read_of(managed->tensor));
  }
  lent_ = std::move(capsule);
  return OPMUX_READ_OK;
}

}  // namespace opmux::python
