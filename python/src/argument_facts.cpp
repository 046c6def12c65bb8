#include "argument_facts.hpp"

#include <bit>

namespace opmux::python {
namespace {

struct Names {
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* device = PyUnicode_InternFromString("device");
  PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* is_contiguous = PyUnicode_InternFromString("is_contiguous");
  PyObject* flags = PyUnicode_InternFromString("flags");
  PyObject* c_contiguous = PyUnicode_InternFromString("c_contiguous");
};
const Names& names() {
  static const Names all;
  return all;
}

/// Whether the object is exactly a list or tuple. Subclasses may override item access.
bool is_plain_sequence(PyObject* object) {
  return PyTuple_CheckExact(object) != 0 || PyList_CheckExact(object) != 0;
}

/// Whether the object is immutable and can be compared by value.
bool is_value(PyObject* object) {
  return object == Py_None || PyBool_Check(object) != 0 || PyLong_CheckExact(object) != 0 ||
         PyFloat_CheckExact(object) != 0 || PyUnicode_CheckExact(object) != 0 ||
         PyBytes_CheckExact(object) != 0;
}

bool equal_values(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a) != 0) {
    // Compared by bits, so that NaN equals NaN and -0.0 differs from 0.0.
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool in_layout(FactKind kind) {
  return kind == FactKind::dtype || kind == FactKind::rank || kind == FactKind::dim ||
         kind == FactKind::contiguous || kind == FactKind::device || kind == FactKind::stride;
}

bool is_contiguous(const opmux_read_tensor& tensor) {
  int64_t expected = 1;
  if (tensor.strides == nullptr) return true;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

/// Reads a numeric fact of a tensor; false if the tensor has no such dimension.
bool read_number(const Fact& fact, const opmux_read_tensor& tensor, int64_t& number) {
  const int32_t at = fact.index < 0 ? fact.index + tensor.ndim : fact.index;
  const bool inside = at >= 0 && at < tensor.ndim;
  switch (fact.kind) {
    case FactKind::dtype: number = tensor.dtype; return true;
    case FactKind::rank: number = tensor.ndim; return true;
    case FactKind::contiguous: number = is_contiguous(tensor) ? 1 : 0; return true;
    case FactKind::device:
      number = static_cast<int64_t>(tensor.device_type) << 32 | tensor.device_id;
      return true;
    case FactKind::dim: return inside && (number = tensor.shape[at], true);
    case FactKind::stride:
      return inside && tensor.strides != nullptr && (number = tensor.strides[at], true);
    default: return false;
  }
}

Reference contiguity_of(PyObject* object) {
  if (PyObject_HasAttr(object, names().is_contiguous) != 0) {
    return Reference::steal(PyObject_CallMethodNoArgs(object, names().is_contiguous));
  }
  const Reference flags = Reference::steal(PyObject_GetAttr(object, names().flags));
  return flags ? Reference::steal(PyObject_GetAttr(flags.get(), names().c_contiguous))
               : Reference();
}

Reference dim_of(PyObject* object, int32_t index) {
  const Reference shape = Reference::steal(PyObject_GetAttr(object, names().shape));
  return shape ? Reference::steal(PySequence_GetItem(shape.get(), index)) : Reference();
}

Reference rank_of(PyObject* object) {
  const Reference shape = Reference::steal(PyObject_GetAttr(object, names().shape));
  const Py_ssize_t size = shape ? PySequence_Size(shape.get()) : -1;
  return size < 0 ? Reference() : Reference::steal(PyLong_FromSsize_t(size));
}

/// Reads a fact through Python attributes, for arguments that are not read in place. Returns null,
/// without an exception, if the fact has no value.
Reference read_object(const Fact& fact, PyObject* object) {
  Reference answer;
  switch (fact.kind) {
    case FactKind::value: answer = Reference::borrow(is_value(object) ? object : nullptr); break;
    case FactKind::same: answer = Reference::borrow(object); break;
    case FactKind::dtype: answer = Reference::steal(PyObject_GetAttr(object, names().dtype)); break;
    case FactKind::device:
      answer = Reference::steal(PyObject_GetAttr(object, names().device));
      break;
    case FactKind::requires_grad:
      answer = Reference::steal(PyObject_GetAttr(object, names().requires_grad));
      break;
    case FactKind::rank: answer = rank_of(object); break;
    case FactKind::dim: answer = dim_of(object, fact.index); break;
    case FactKind::contiguous: answer = contiguity_of(object); break;
    case FactKind::attribute:
      answer = Reference::steal(PyObject_GetAttr(object, fact.name.get()));
      break;
    case FactKind::length:
      if (is_plain_sequence(object)) {
        answer = Reference::steal(PyLong_FromSsize_t(PySequence_Fast_GET_SIZE(object)));
      }
      break;
    default: break;
  }
  if (!answer) PyErr_Clear();
  return answer;
}

}  // namespace

PyObject* ArgumentFacts::find(PyObject* const* args) const {
  PyObject* object = args[argument_];
  for (const uint32_t at : path_) {
    if (!is_plain_sequence(object)) return nullptr;
    if (static_cast<Py_ssize_t>(at) >= PySequence_Fast_GET_SIZE(object)) return nullptr;
    object = PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(at));
  }
  return object;
}

bool ArgumentFacts::ask(PyObject* const* args, FactKind kind, int32_t index, PyObject* name) {
  const Reference kept = Reference::borrow(find(args));  // attributes may change the list it is in
  PyObject* const object = kept.get();
  if (object == nullptr) return false;
  if (!type_) {
    type_ = Reference::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    const TypeReader& reader = reader_of(Py_TYPE(object));
    opmux_read_tensor tensor;
    if (read_layout(reader, object, tensor)) reader_ = &reader;
  }
  if (kind == FactKind::type) return true;
  Fact fact{kind, index, 0, {}, Reference::borrow(name)};
  if (reader_ != nullptr && in_layout(kind)) {
    opmux_read_tensor tensor;
    if (!read_layout(*reader_, object, tensor)) return false;
    if (!read_number(fact, tensor, fact.number)) return false;
    layout_ = true;
  } else {
    fact.object = read_object(fact, object);
    if (!fact.object) return false;
  }
  facts_.push_back(std::move(fact));
  return true;
}

bool ArgumentFacts::agrees(const Fact& fact, PyObject* object,
                           const opmux_read_tensor& tensor) const {
  if (!fact.object) {
    int64_t number = 0;
    return read_number(fact, tensor, number) && number == fact.number;
  }
  const Reference answer = read_object(fact, object);
  return answer && equal_values(answer.get(), fact.object.get());
}

bool ArgumentFacts::agree(PyObject* const* args) const {
  PyObject* const object = path_.empty() ? args[argument_] : find(args);
  if (object == nullptr) return false;
  // Reading an attribute may change the list that the object is in.
  const Reference kept = Reference::borrow(path_.empty() ? nullptr : object);
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type_.get()) return false;
  opmux_read_tensor tensor;
  if (layout_ && !read_layout(*reader_, object, tensor)) return false;
  for (const Fact& fact : facts_) {
    if (!agrees(fact, object, tensor)) return false;
  }
  return true;
}

}  // namespace opmux::python
