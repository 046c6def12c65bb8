#include "argument_frame.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <opmux/detail/arguments.hpp>

#include "errors.hpp"
#include "gil.hpp"
#include "held_types.hpp"

namespace opmux::python {

/// Storage for list and string arguments, allocated on first use because few operators have one.
struct ArgumentFrame::Lists {
  struct One {
    opmux_list list{};
    std::vector<int64_t> ints;
    std::vector<std::unique_ptr<TensorSlot>> slots;
    std::vector<const TensorView*> views;
    std::vector<const opmux_tensor*> tensors;
    Reference items;  ///< keeps the tensors of the list alive during the call
  };
  std::array<One, OPMUX_MAX_ARGS> all;
};

/// The inputs of the last shape inference. Calls with equal inputs have outputs of equal shapes.
struct ArgumentFrame::Inputs {
  uint32_t count = 0;
  std::array<ArgTag, OPMUX_MAX_ARGS> tags{};
  std::array<uint64_t, OPMUX_MAX_ARGS> words{};
};

namespace {

const char* wanted_by(ArgTag type) {
  switch (type) {
    case ArgTag::tensor: return "a tensor";
    case ArgTag::integer: return "an int";
    case ArgTag::floating: return "a float";
    case ArgTag::logical: return "a bool";
    case ArgTag::enumeration: return "a str";
    case ArgTag::string: return "a str";
    case ArgTag::integer_list: return "a list of ints";
    case ArgTag::tensor_list: return "a list of tensors";
    default: return "something else";
  }
}

bool read_integer(PyObject* object, int64_t& value) {
  if (PyFloat_Check(object) != 0) return false;
  const Reference index = Reference::steal(guarded([&] { return PyNumber_Index(object); }));
  if (!index) return PyErr_Clear(), false;
  int overflow = 0;
  value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  return overflow == 0;
}

bool read_number(PyObject* object, double& value) {
  if (PyFloat_CheckExact(object) != 0) {
    value = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (PyUnicode_Check(object) != 0) return false;
  value = PyFloat_AsDouble(object);
  if (PyErr_Occurred() != nullptr) return PyErr_Clear(), false;
  return true;
}

/// numpy's bool does not support __index__, so it is recognized by its type name.
bool is_numpy_bool(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return name == "numpy.bool" || name == "numpy.bool_";
}

bool read_logical(PyObject* object, int64_t& value) {
  if (PyBool_Check(object) != 0 || is_numpy_bool(object)) {
    value = PyObject_IsTrue(object);
    return true;
  }
  return read_integer(object, value) && (value == 0 || value == 1);
}

std::string wanted_for(ArgTag type, PyObject* object) {
  const bool too_large = type == ArgTag::integer && PyLong_Check(object) != 0;
  return std::string(wanted_by(type)) + (too_large ? " of at most 64 bits" : "");
}

}  // namespace

ArgumentFrame::ArgumentFrame(const Signature& signature, ParameterConstants& constants)
    : signature_(&signature),
      constants_(&constants),
      slots_(std::make_unique<TensorSlot[]>(signature.size())) {}

ArgumentFrame::~ArgumentFrame() = default;

ArgumentFrame::Converted ArgumentFrame::convert() {
  modes_ = {};
  elsewhere_ = nullptr;
  count_ = static_cast<uint32_t>(signature_->size());
  while (count_ > 0 && given[count_ - 1] == nullptr) --count_;
  for (uint32_t i = 0; i < count_; ++i) {
    const Converted converted = convert_one(i);
    if (converted != Converted::ok) [[unlikely]]
      return converted;
  }
  set_site();
  look_at_outputs();
  return Converted::ok;
}

void ArgumentFrame::look_at_outputs() {
  lacks_output_ = false;
  for (const uint8_t i : signature_->outputs()) {
    lacks_output_ |= given[i] == nullptr && !signature_->traits(i).optional;
  }
  elements_written_ = 0;
  for (const uint8_t i : signature_->written()) {
    if (i >= count_ || tags_[i] != ArgTag::tensor || !values[i].tensor->present()) continue;
    elements_written_ = std::max(elements_written_, slots_[i].elements());
  }
}

void ArgumentFrame::set_site() {
  bool same = site_count_ == count_;
  for (uint32_t i = 0; same && i < count_; ++i) same = site_tags_[i] == tags_[i];
  if (same) [[likely]]
    return;
  site_count_ = count_;
  site_tags_ = tags_;
  site = {};
  tensors = 0;
  words_possible = count_ <= 4;
  for (uint32_t i = 0; i < count_; ++i) {
    const ArgTag tag = tags_[i];
    site.push(tag);
    if (tag == ArgTag::tensor) {
      words_possible &= tensors == i;
      ++tensors;
    } else {
      words_possible &= tag < ArgTag::string && tag != ArgTag::none;
    }
  }
  words_possible &= tensors > 0;
}

ArgumentFrame::Converted ArgumentFrame::convert_one(size_t i) {
  PyObject* const object = given[i];
  const ArgTag type = signature_->traits(i).type;
  if (object == nullptr || object == Py_None) {
    values[i].tensor = &detail::absent_tensor;
    tags_[i] = type == ArgTag::tensor ? ArgTag::tensor : ArgTag::none;
    return Converted::ok;
  }
  return type == ArgTag::tensor ? convert_tensor(i, object) : convert_scalar(i, object);
}

ArgumentFrame::Converted ArgumentFrame::convert_tensor(size_t i, PyObject* object) {
  TensorSlot& slot = slots_[i];
  const int32_t outcome = slot.read(object, modes_);
  const Signature::Traits& traits = signature_->traits(i);
  if (outcome != OPMUX_READ_OK) [[unlikely]] {
    if (const HeldConstant* held = held_constant(object)) return convert_constant(i, *held);
    return refuse_tensor(i, object, slot, outcome);
  }
  lent_ |= slot.how().path == ReadPath::protocol;
  if (slot.view().device().type != OPMUX_DEVICE_CPU) [[unlikely]]
    elsewhere_ = &slot;
  if (traits.written) {
    if (const char* const why = slot.not_writable(object, modes_)) [[unlikely]]
      return refuse_writing(i, why);
  }
  values[i].tensor = &slot.view();
  tags_[i] = ArgTag::tensor;
  if (traits.constant && slot.how().parameter) {
    if (const Constant* constant = constants_->find(object, slot)) {
      values[i].tensor = &constant->view();
      tags_[i] = ArgTag::constant;
    }
  }
  return Converted::ok;
}

ArgumentFrame::Converted ArgumentFrame::convert_constant(size_t i, const HeldConstant& held) {
  if (signature_->traits(i).written) return refuse_writing(i, "is a constant");
  values[i].tensor = &held.constant.view();
  tags_[i] = signature_->traits(i).constant ? ArgTag::constant : ArgTag::tensor;
  return Converted::ok;
}

ArgumentFrame::Converted ArgumentFrame::convert_scalar(size_t i, PyObject* object) {
  const ArgTag type = signature_->traits(i).type;
  bool fits = false;
  switch (type) {
    case ArgTag::floating: fits = read_number(object, values[i].f64); break;
    case ArgTag::integer: fits = read_integer(object, values[i].i64); break;
    case ArgTag::logical: fits = read_logical(object, values[i].i64); break;
    case ArgTag::enumeration:
    case ArgTag::string: return convert_enum(i, object);
    case ArgTag::integer_list: return convert_ints(i, object);
    case ArgTag::tensor_list: return convert_tensors(i, object);
    default: break;
  }
  if (!fits) [[unlikely]]
    return refuse_type(i, object, wanted_for(type, object));
  tags_[i] = type;
  return Converted::ok;
}

/// Converts a known enum word to its index. The engine reports the error for unknown words.
ArgumentFrame::Converted ArgumentFrame::convert_enum(size_t i, PyObject* object) {
  const Signature::Parameter& parameter = signature_->parameters()[i];
  if (PyUnicode_Check(object) == 0)
    return refuse_type(i, object, wanted_by(signature_->traits(i).type));
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) return Converted::failed;
  const std::string_view word(text, static_cast<size_t>(size));
  for (size_t at = 0; at < parameter.words.size(); ++at) {
    if (parameter.words[at] != word) continue;
    values[i].i64 = static_cast<int64_t>(at);
    tags_[i] = ArgTag::enumeration;
    return Converted::ok;
  }
  if (lists_ == nullptr) lists_ = std::make_unique<Lists>();
  lists_->all[i].list = {text, static_cast<uint64_t>(size)};
  values[i].list = &lists_->all[i].list;
  tags_[i] = ArgTag::string;
  return Converted::ok;
}

ArgumentFrame::Converted ArgumentFrame::convert_ints(size_t i, PyObject* object) {
  Reference items = Reference::steal(PySequence_Fast(object, ""));
  if (!items) return PyErr_Clear(), refuse_type(i, object, wanted_by(ArgTag::integer_list));
  if (lists_ == nullptr) lists_ = std::make_unique<Lists>();
  Lists::One& own = lists_->all[i];
  own.ints.clear();
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k) {
    if (PyLong_CheckExact(PySequence_Fast_GET_ITEM(items.get(), k)) == 0) {
      // __index__ may change the list, so read a copy of it from here on.
      items = Reference::steal(PySequence_Tuple(items.get()));
      if (!items) return Converted::failed;
    }
    PyObject* const item = PySequence_Fast_GET_ITEM(items.get(), k);
    if (!read_integer(item, own.ints.emplace_back())) return refuse_type(i, item, "ints");
  }
  own.list = {own.ints.data(), own.ints.size()};
  values[i].list = &own.list;
  tags_[i] = ArgTag::integer_list;
  return Converted::ok;
}

ArgumentFrame::Converted ArgumentFrame::convert_tensors(size_t i, PyObject* object) {
  // A copy, because __dlpack__ or another thread may change the list during the call.
  Reference items = Reference::steal(guarded([&] { return PySequence_Tuple(object); }));
  if (!items) return PyErr_Clear(), refuse_type(i, object, wanted_by(ArgTag::tensor_list));
  if (lists_ == nullptr) lists_ = std::make_unique<Lists>();
  Lists::One& own = lists_->all[i];
  own.views.clear();
  own.tensors.clear();
  lent_ = true;
  own.items = std::move(items);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(own.items.get()); ++k) {
    PyObject* const item = PyTuple_GET_ITEM(own.items.get(), k);
    if (own.slots.size() <= static_cast<size_t>(k)) {
      own.slots.push_back(std::make_unique<TensorSlot>());
    }
    TensorSlot& slot = *own.slots[static_cast<size_t>(k)];
    const int32_t outcome = slot.read(item, modes_);
    if (outcome != OPMUX_READ_OK) return refuse_tensor(i, item, slot, outcome);
    own.views.push_back(&slot.view());
    own.tensors.push_back(&slot.view().c());
  }
  own.list = {static_cast<const void*>(own.views.data()), own.views.size()};
  values[i].list = &own.list;
  tags_[i] = ArgTag::tensor_list;
  return Converted::ok;
}

ArgumentFrame::Converted ArgumentFrame::refuse_type(size_t i, PyObject* object,
                                                    const std::string& wanted) const {
  raise(Code::invalid_argument, "python.argument_type",
        signature_->name() + ": '" + signature_->parameters()[i].name + "' must be " + wanted +
            ", not '" + Py_TYPE(object)->tp_name + "'");
  return Converted::failed;
}

ArgumentFrame::Converted ArgumentFrame::refuse_tensor(size_t i, PyObject* object,
                                                      const TensorSlot& slot, int32_t outcome) {
  const std::string& name = signature_->parameters()[i].name;
  const std::string head = signature_->name() + ": '" + name + "' ";
  switch (outcome) {
    case OPMUX_READ_GRAD:
    case OPMUX_READ_REROUTE:
    case OPMUX_READ_MODE:
      rerouted_ = {i, Py_TYPE(object)->tp_name, outcome};
      return Converted::reroute;
    case OPMUX_READ_LAZY:
      raise(Code::invalid_argument, "python.lazy",
            head +
                "has its conjugate or negative bit set, so its memory does not hold its values: "
                "call resolve_conj() or resolve_neg() on it");
      break;
    case OPMUX_READ_PLACE:
      if (slot.how().path == ReadPath::none) return refuse_type(i, object, "a tensor");
      raise(Code::invalid_argument, "python.place", head + "has no memory that can be read here");
      break;
    default: return refuse_reading(i);
  }
  return Converted::failed;
}

/// The exception of the tensor's library becomes the cause of ours.
ArgumentFrame::Converted ArgumentFrame::refuse_reading(size_t i) const {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return Converted::failed;
  const Caught caught = catch_exception();
  const std::string first_line = caught.text.substr(0, caught.text.find('\n'));
  raise(Status(Code::invalid_argument, "python.not_readable",
               signature_->name() + ": '" + signature_->parameters()[i].name +
                   "' cannot be read: " + first_line),
        caught.exception.get());
  return Converted::failed;
}

ArgumentFrame::Converted ArgumentFrame::refuse_writing(size_t i, const char* why) const {
  raise(Code::invalid_argument, "python.not_writable",
        signature_->name() + ": '" + signature_->parameters()[i].name + "' " + why);
  return Converted::failed;
}

void ArgumentFrame::raise_not_taken() const {
  const std::string head =
      signature_->name() + ": '" + signature_->parameters()[rerouted_.argument].name + "' ";
  if (rerouted_.outcome == OPMUX_READ_GRAD) {
    raise(Code::invalid_argument, "python.requires_grad",
          head +
              "requires grad, but autograd would not record this call: import opmux.torch, "
              "detach() it, or call under torch.no_grad() or torch.inference_mode()");
    return;
  }
  if (rerouted_.outcome == OPMUX_READ_MODE) {
    raise(Code::invalid_argument, "python.reroute",
          head +
              "was passed inside a torch dispatch mode that must see the call: import "
              "opmux.torch, or leave the mode");
    return;
  }
  raise(Code::invalid_argument, "python.reroute",
        head + "is a " + rerouted_.type +
            ", which needs torch's dispatcher: import opmux.torch, or pass a plain torch.Tensor");
}

void ArgumentFrame::give_back() {
  lent_ = false;
  for (uint32_t i = 0; i < count_; ++i) slots_[i].drop();
  if (lists_ == nullptr) return;
  for (Lists::One& one : lists_->all) {
    for (const auto& slot : one.slots) slot->drop();
    one.items = {};
  }
}

bool ArgumentFrame::current_stream(void*& stream) const {
  stream = nullptr;
  const ExchangeApi* const exchange = elsewhere_->how().exchange;
  if (exchange == nullptr || exchange->current_stream == nullptr) return true;
  const Device device = elsewhere_->view().device();
  return exchange->current_stream(device.type, device.id, &stream) == 0;
}

std::vector<opmux_arg> ArgumentFrame::c_arguments() const {
  std::vector<opmux_arg> all(count_);
  for (uint32_t i = 0; i < count_; ++i) {
    all[i].tag = static_cast<uint32_t>(tags_[i] == ArgTag::constant ? ArgTag::tensor : tags_[i]);
    const bool absent = tags_[i] == ArgTag::none ||
                        (all[i].tag == OPMUX_ARG_TENSOR && !values[i].tensor->present());
    if (absent) {
      all[i].tag = OPMUX_ARG_NONE;
    } else if (all[i].tag == OPMUX_ARG_TENSOR) {
      all[i].value.tensor = &values[i].tensor->c();
    } else if (tags_[i] == ArgTag::tensor_list) {
      const std::vector<const opmux_tensor*>& tensors_of = lists_->all[i].tensors;
      all[i].value.list = {static_cast<const void*>(tensors_of.data()), tensors_of.size()};
    } else if (is_list(tags_[i])) {
      all[i].value.list = *values[i].list;
    } else {
      all[i].value.i64 = values[i].i64;
      if (tags_[i] == ArgTag::floating) all[i].value.f64 = values[i].f64;
    }
  }
  return all;
}

bool ArgumentFrame::add_output(size_t i, PyObject* object) {
  given[i] = object;
  if (i >= count_) return convert() == Converted::ok;
  const Converted converted = convert_one(i);
  set_site();
  look_at_outputs();
  return converted == Converted::ok;
}

bool ArgumentFrame::infers_as_before() {
  if (inputs_ == nullptr) inputs_ = std::make_unique<Inputs>();
  bool same = inputs_->count == count_;
  inputs_->count = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const ArgTag tag = tags_[i];
    if (is_list(tag)) return false;
    const bool tensor = tag == ArgTag::tensor || tag == ArgTag::constant;
    // The view of a caller's Constant is not in a slot, so its layout number is unknown.
    if (tensor && given[i] != nullptr && held_constant(given[i]) != nullptr) return false;
    const bool absent = given[i] == nullptr || given[i] == Py_None;
    const uint64_t word = absent   ? 0
                          : tensor ? slots_[i].layout()
                                   : std::bit_cast<uint64_t>(values[i].i64);
    same &= inputs_->tags[i] == tag && inputs_->words[i] == word;
    inputs_->tags[i] = tag;
    inputs_->words[i] = word;
  }
  inputs_->count = count_;
  return same && !inferred.empty();
}

}  // namespace opmux::python
