#include "errors.hpp"
#include "gil.hpp"
#include "held_types.hpp"
#include "operator_call.hpp"

namespace opmux::python {
namespace {

/// The first tensor input, whose library allocates the outputs; null if there is none.
PyObject* like_of(const ArgumentFrame& frame) {
  for (const uint8_t i : frame.signature().inputs()) {
    if (frame.signature().traits(i).type != ArgTag::tensor || frame.given[i] == nullptr ||
        frame.given[i] == Py_None) {
      continue;
    }
    const HeldConstant* const held = held_constant(frame.given[i]);
    return held == nullptr ? frame.given[i] : held->tensor.get();
  }
  return nullptr;
}

void set_error(void*, const char*, const char* message) {
  PyErr_SetString(PyExc_RuntimeError, message);
}

/// Allocates through the DLPack C exchange API, without calling Python code.
Reference allocate_by_exchange(const ExchangeApi& exchange, const OutputInfo& output) {
  opmux_tensor prototype{};
  prototype.dtype = {output.dtype.code, output.dtype.bits, output.dtype.lanes};
  prototype.device = {output.device.type, output.device.id};
  prototype.ndim = static_cast<int32_t>(output.shape.size());
  prototype.shape = const_cast<int64_t*>(output.shape.data());
  VersionedTensor* managed = nullptr;
  if (exchange.allocate(&prototype, &managed, nullptr, set_error) != 0) return {};
  void* object = nullptr;
  if (exchange.object_from_managed(managed, &object) != 0) return {};
  return Reference::steal(static_cast<PyObject*>(object));
}

Reference shape_of(const std::vector<int64_t>& shape) {
  Reference tuple = Reference::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t i = 0; tuple && i < shape.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  }
  return tuple;
}

Reference allocate(PyObject* like, const OutputInfo& output) {
  if (like != nullptr) {
    const TypeReader& how = reader_of(Py_TYPE(like));
    if (how.path == ReadPath::module && output.device.type == OPMUX_DEVICE_CPU) {
      return Reference::steal(how.reader->allocate(
          output.shape.data(), static_cast<int32_t>(output.shape.size()), output.dtype.packed()));
    }
    const bool exchanges = how.torch && how.exchange != nullptr &&
                           how.exchange->allocate != nullptr &&
                           how.exchange->object_from_managed != nullptr;
    if (exchanges) return allocate_by_exchange(*how.exchange, output);
  }
  const Reference shape = shape_of(output.shape);
  if (!shape || !hooks().allocate) return {};
  PyObject* const library = like == nullptr ? Py_None : like;
  const std::string dtype = name_of(output.dtype);
  return Reference::steal(guarded([&] {
    return PyObject_CallFunction(hooks().allocate.get(), "OOsii", library, shape.get(),
                                 dtype.c_str(), output.device.type, output.device.id);
  }));
}

/// Raises an error that names the first missing input, because shape inference would not name it.
bool has_inputs(const ArgumentFrame& frame) {
  const Signature& signature = frame.signature();
  for (const uint8_t i : signature.inputs()) {
    if (signature.traits(i).optional) continue;
    if (frame.given[i] != nullptr && frame.given[i] != Py_None) continue;
    raise(Code::invalid_argument, "schema.argument_missing",
          signature.name() + ": '" + signature.parameters()[i].name +
              "' is missing: " + signature.text());
    return false;
  }
  return true;
}

bool infer(const Operator& op, ArgumentFrame& frame) {
  if (frame.infers_as_before()) return true;
  if (!has_inputs(frame)) return false;
  frame.inferred.clear();
  auto outputs = op.infer_outputs(frame.c_arguments());
  if (!outputs) return raise(outputs.error()), false;
  frame.inferred = std::move(*outputs);
  return true;
}

}  // namespace

bool allocate_outputs(const Operator& op, ArgumentFrame& frame, std::vector<Reference>& made) {
  if (!infer(op, frame)) return false;
  PyObject* const like = like_of(frame);
  for (const OutputInfo& output : frame.inferred) {
    if (frame.given[output.position] != nullptr) continue;
    if (frame.signature().traits(output.position).optional) continue;
    made.push_back(allocate(like, output));
    if (!made.back() || !frame.add_output(output.position, made.back().get())) return false;
  }
  return true;
}

}  // namespace opmux::python
