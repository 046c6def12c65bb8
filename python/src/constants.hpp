#pragma once

#include "reference.hpp"

#include <optional>

#include <opmux/runtime.hpp>

#include "tensor_slot.hpp"

namespace opmux::python {

/// The object that opmux.constant() returns. Keeps the tensor alive.
struct HeldConstant {
  Reference tensor;
  Constant constant;
};

/// Caches a constant for each torch parameter, keyed by object and version. An entry is removed
/// when its parameter is destroyed. Belongs to one runtime; used with the GIL held.
class ParameterConstants {
 public:
  explicit ParameterConstants(Runtime& runtime) : runtime_(&runtime) {}
  ParameterConstants(const ParameterConstants&) = delete;
  ParameterConstants& operator=(const ParameterConstants&) = delete;
  ~ParameterConstants();

  /// Returns the constant of a parameter that was read into `slot`. Null if the tensor has no
  /// version counter or the runtime refuses it.
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
