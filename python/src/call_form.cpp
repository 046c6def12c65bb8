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
                                             PyObject* keywords, bool for_plan) {
  const bool same_names = count == form_.count && form_.has_names(keywords);
  const bool comparable = form_.comparable && form_.readers == readers_generation;
  if (same_names && comparable && repeats(args, for_plan)) [[likely]]
    return Converted::ok;
  const bool placed = same_names && place(args);
  form_.count = -1;
  if (!placed && !signature_->bind(args, count, keywords, given)) return Converted::failed;
  const Converted converted = convert();
  if (converted == Converted::ok) remember(args, count, keywords);
  return converted;
}

/// Stores the arguments of a call with the same number and names as the last one. False if their
/// places depend on their values.
bool ArgumentFrame::place(PyObject* const* args) {
  for (uint32_t k = 0; k < form_.size; ++k) {
    if (args[k] == Py_None || PyTuple_Check(args[k]) != 0) return false;  // may be that of out=
    given[form_.arguments[k].position] = args[k];
  }
  for (uint32_t i = 0; i < form_.left_out; ++i) given[form_.outputs[i]] = nullptr;
  return true;
}

bool ArgumentFrame::repeats(PyObject* const* args, bool for_plan) {
  CallForm& form = form_;
  modes_ = {};
  uint32_t tensors_met = 0;
  bool converted = false;
  for (uint32_t k = 0; k < form.size; ++k) {
    CallForm::Argument& argument = form.arguments[k];
    given[argument.position] = args[k];
    if (Py_TYPE(args[k]) == argument.type) [[likely]] {
      form.known[tensors_met++].object = args[k];
    } else if (!repeats_otherwise(argument, args[k], converted)) {
      return false;
    }
  }
  if (form.tensors != 0 && !repeats_in_place(tensors_met, for_plan)) return false;
  for (uint32_t i = 0; i < form.left_out; ++i) {
    given[form.outputs[i]] = nullptr;
    values[form.outputs[i]].tensor = &detail::absent_tensor;
  }
  lacks_output_ = form.lacks_output;
  elements_written_ = form.elements_written;
  if (converted) look_at_outputs();
  return true;
}

bool ArgumentFrame::repeats_in_place(uint32_t tensors_met, bool for_plan) {
  CallForm& form = form_;
  uint32_t state = 0;
  const int32_t same =
      form.reader->reread(form.known.data(), tensors_met, for_plan ? nullptr : &state);
  if (same == 0) return false;
  if (!for_plan) modes_.keep(state);
  return true;
}

bool ArgumentFrame::repeats_otherwise(CallForm::Argument& argument, PyObject* object,
                                      bool& converted) {
  if (argument.type != nullptr) return false;
  if (argument.exchanged != nullptr) {
    const bool written = signature_->traits(argument.position).written;
    return slots_[argument.position].repeats(object, *argument.exchanged, modes_, written);
  }
  if (argument.same.get() == object) return true;
  argument.same = is_fixed(object) ? Reference::borrow(object) : Reference();
  if (argument.number && PyFloat_CheckExact(object) != 0) {
    values[argument.position].f64 = PyFloat_AS_DOUBLE(object);
    return true;
  }
  converted = true;
  const ArgTag before = tags_[argument.position];
  const bool fits = convert_one(argument.position) == Converted::ok;
  PyErr_Clear();  // the full conversion in take() reports the error
  return fits && tags_[argument.position] == before;
}

void ArgumentFrame::remember(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  CallForm& form = form_;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  form.tensors = 0;
  form.comparable = false;
  for (Py_ssize_t k = 0; k < count + named; ++k) {
    const int at = k < count ? signature_->inputs()[static_cast<size_t>(k)]
                             : signature_->place_of(PyTuple_GET_ITEM(keywords, k - count), args[k]);
    if (at < 0) return;
    remember_argument(form.arguments[static_cast<size_t>(k)], static_cast<uint8_t>(at), args[k]);
  }
  form.left_out = 0;
  for (const uint8_t i : signature_->outputs()) {
    if (given[i] == nullptr) form.outputs[form.left_out++] = i;
  }
  form.lacks_output = lacks_output_;
  form.elements_written = elements_written_;
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
  argument.exchanged = nullptr;
  TensorSlot& slot = slots_[at];
  if (fixed || tags_[at] != ArgTag::tensor || values[at].tensor != &slot.view()) return;
  const Signature::Traits& traits = signature_->traits(at);
  if (traits.constant && slot.how().parameter) return;
  form_.comparable |= slot.how().path <= ReadPath::exchange;
  if (slot.how().path == ReadPath::exchange) argument.exchanged = &slot.how();
  if (slot.how().path != ReadPath::module) return;
  argument.type = slot.how().type;
  form_.reader = slot.how().reader;
  const opmux_tensor& tensor = slot.view().c();
  form_.known[form_.tensors++] = {object,
                                  tensor.shape,
                                  tensor.strides,
                                  tensor.ndim,
                                  slot.view().dtype().packed(),
                                  traits.written ? 1u : 0u,
                                  slot.data_place()};
}

}  // namespace opmux::python
