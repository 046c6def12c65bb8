#include "call_form.hpp"

#include "argument_frame.hpp"

namespace opmux::python {
namespace {

/// Whether the object is immutable, so that the same object always has the same value.
bool is_fixed(PyObject* object) {
  return object == Py_None || PyBool_Check(object) != 0 || PyLong_CheckExact(object) != 0 ||
         PyFloat_CheckExact(object) != 0 || PyUnicode_CheckExact(object) != 0;
}

}  // namespace

ArgumentFrame::Converted ArgumentFrame::take(PyObject* const* args, Py_ssize_t count,
                                             PyObject* keywords) {
  if (repeats(args, count, keywords)) [[likely]]
    return Converted::ok;
  form_.count = -1;
  if (!signature_->bind(args, count, keywords, given)) return Converted::failed;
  const Converted converted = convert();
  if (converted == Converted::ok && reads_in_place()) remember(args, count, keywords);
  return converted;
}

bool ArgumentFrame::repeats(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  CallForm& form = form_;
  if (count != form.count || form.readers != readers_generation || !form.has_names(keywords)) {
    return false;
  }
  modes_ = {};
  uint32_t tensors_met = 0;
  for (uint32_t k = 0; k < form.size; ++k) {
    CallForm::Argument& argument = form.arguments[k];
    given[argument.position] = args[k];
    if (Py_TYPE(args[k]) == argument.type) [[likely]] {
      form.known[tensors_met++].object = args[k];
    } else if (!repeats_otherwise(argument, args[k])) {
      return false;
    }
  }
  if (form.reader->reread(form.known.data(), tensors_met) == 0) return false;
  for (uint32_t i = 0; i < tensors_met; ++i) slots_[form.places[i]].move_to(form.known[i].data);
  for (uint32_t i = 0; i < form.left_out; ++i) {
    given[form.outputs[i]] = nullptr;
    values[form.outputs[i]].tensor = &detail::absent_tensor;
  }
  return true;
}

bool ArgumentFrame::repeats_otherwise(CallForm::Argument& argument, PyObject* object) {
  if (argument.type != nullptr) return false;
  if (argument.same.get() == object) return true;
  argument.same = is_fixed(object) ? Reference::borrow(object) : Reference();
  if (argument.number && PyFloat_CheckExact(object) != 0) {
    values[argument.position].f64 = PyFloat_AS_DOUBLE(object);
    return true;
  }
  const ArgTag before = tags_[argument.position];
  const bool fits = convert_one(argument.position) == Converted::ok;
  PyErr_Clear();  // the full conversion in take() reports the error
  return fits && tags_[argument.position] == before;
}

void ArgumentFrame::remember(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  CallForm& form = form_;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  form.tensors = 0;
  for (Py_ssize_t k = 0; k < count + named; ++k) {
    const int at = k < count ? signature_->inputs()[static_cast<size_t>(k)]
                             : signature_->place_of(PyTuple_GET_ITEM(keywords, k - count), args[k]);
    if (at < 0) return;
    remember_argument(form.arguments[static_cast<size_t>(k)], static_cast<uint8_t>(at), args[k]);
  }
  if (form.tensors == 0) return;  // without tensors, repeats() would save nothing
  form.left_out = 0;
  for (const uint8_t i : signature_->outputs()) {
    if (given[i] == nullptr) form.outputs[form.left_out++] = i;
  }
  if (form.names.get() != keywords) form.names = Reference::borrow(keywords);
  form.size = static_cast<uint32_t>(count + named);
  form.readers = readers_generation;
  form.count = count;
}

void ArgumentFrame::remember_argument(CallForm::Argument& argument, uint8_t at, PyObject* object) {
  argument.position = at;
  argument.type = nullptr;
  argument.number = tags_[at] == ArgTag::floating;
  const bool fixed = is_fixed(object);
  if (argument.same.get() != (fixed ? object : nullptr)) {
    argument.same = Reference::borrow(fixed ? object : nullptr);
  }
  const TensorSlot& slot = slots_[at];
  if (fixed || tags_[at] != ArgTag::tensor || values[at].tensor != &slot.view()) return;
  const Signature::Traits& traits = signature_->traits(at);
  if (slot.how().path != ReadPath::module || (traits.constant && slot.how().parameter)) return;
  argument.type = slot.how().type;
  form_.reader = slot.how().reader;
  form_.places[form_.tensors] = at;
  const opmux_tensor& tensor = slot.view().c();
  form_.known[form_.tensors++] = {object,
                                  tensor.shape,
                                  tensor.strides,
                                  tensor.ndim,
                                  slot.view().dtype().packed(),
                                  traits.written ? 1u : 0u,
                                  nullptr};
}

}  // namespace opmux::python
