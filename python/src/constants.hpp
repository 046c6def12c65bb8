#pragma once

#include "reference.hpp"

#include <optional>

#include <opmux/runtime.hpp>

#include "tensor_slot.hpp"

namespace opmux::python {

/// A tensor with an owner: what opmux.constant() returns. Keeps the tensor alive.
struct HeldConstant {
  Reference tensor;
  Constant constant;
};

/// How many calls run while others have the GIL: they may use constants that are replaced.
extern Py_ssize_t calls_without_gil;

/// Parameters of torch modules as constants: each remembered by its object and version, and dropped
/// when the object goes. Belongs to one runtime; used with the GIL held.
class ParameterConstants {
 public:
  explicit ParameterConstants(Runtime& runtime) : runtime_(&runtime) {}
  ParameterConstants(const ParameterConstants&) = delete;
  ParameterConstants& operator=(const ParameterConstants&) = delete;
  ~ParameterConstants();

  /// The constant of a parameter that was read into `slot`; null if it cannot have one.
  const Constant* find(PyObject* parameter, const TensorSlot& slot);
  void forget(PyObject* parameter);
  size_t size() const;

 private:
  struct Entry;
  struct Table;
  const Constant* add(PyObject* parameter, const TensorSlot& slot);

  Runtime* runtime_;
  Table* table_ = nullptr;
};

}  // namespace opmux::python
