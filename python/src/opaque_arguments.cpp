#include "opaque_arguments.hpp"

#include <span>

#include <opmux/detail/arguments.hpp>

namespace opmux::python {

Py_ssize_t GivenArguments::index_of(const SeenParameter& parameter) const {
  if (parameter.position >= 0 && parameter.position < count) return parameter.position;
  for (Py_ssize_t i = count; i < all(); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(keywords, i - count);
    if (name == parameter.name.get() || PyUnicode_Compare(name, parameter.name.get()) == 0) {
      return i;
    }
  }
  return -1;
}

OpaqueArguments::OpaqueArguments(const std::vector<SeenParameter>& seen,
                                 const GivenArguments& given) {
  for (size_t i = 0; i < seen.size(); ++i) {
    const Py_ssize_t at = given.index_of(seen[i]);
    const TensorView* const view = at < 0 ? nullptr : tensors_.read(given.objects[at]);
    site_.push(view == nullptr ? ArgTag::none : ArgTag::tensor);
    values_[i].tensor = view == nullptr ? &detail::absent_tensor : view;
  }
}

const TensorView* ReadTensors::read(PyObject* object) {
  const TypeReader& how = reader_of(Py_TYPE(object));
  if (how.path == ReadPath::protocol) {
    TorchModes modes;
    TensorSlot& slot = lent_.emplace_back();
    const int32_t outcome = slot.read(object, modes);
    if (outcome == OPMUX_READ_ERROR) PyErr_Clear();
    return outcome == OPMUX_READ_OK && slot.view().present() ? &slot.view() : nullptr;
  }
  opmux_read_tensor tensor;
  if (!read_layout(how, object, tensor) || tensor.ndim > OPMUX_MAX_RANK) return nullptr;
  const auto rank = static_cast<size_t>(tensor.ndim);
  const std::span<const int64_t> shape(tensor.shape, rank);
  const std::span<const int64_t> strides(tensor.strides, tensor.strides == nullptr ? 0 : rank);
  return &views_.emplace_back(tensor.data, DType::from_packed(tensor.dtype), shape, strides,
                              Device{tensor.device_type, tensor.device_id});
}

bool ReadTensors::read_result(PyObject* result, std::vector<TensorView>& tensors) {
  const bool several = PyTuple_CheckExact(result) != 0 || PyList_CheckExact(result) != 0;
  const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(result) : 1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Reference item =
        Reference::borrow(several ? PySequence_Fast_GET_ITEM(result, i) : result);
    const TensorView* const view = read(item.get());
    if (view == nullptr || (view->data() == nullptr && view->elements() != 0)) return false;
    tensors.push_back(*view);
  }
  return count != 0;
}

}  // namespace opmux::python
