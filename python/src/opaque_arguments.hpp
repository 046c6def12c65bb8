#pragma once

#include "reference.hpp"

#include <array>
#include <deque>
#include <vector>

#include <opmux/detail/call_site.hpp>

#include "argument_facts.hpp"
#include "tensor_slot.hpp"

namespace opmux::python {

/// A parameter of a dispatchable function that the engine sees: argument i of the operator's schema
/// is the parameter with number i in the list of these.
struct SeenParameter {
  Py_ssize_t position = -1;  ///< among positional arguments; negative: given by name only
  Reference name;
};

/// The arguments of a call in vectorcall layout; borrows the objects.
struct GivenArguments {
  PyObject* const* objects = nullptr;  ///< positional ones, then those named by `keywords`
  Py_ssize_t count = 0;                ///< number of positional arguments
  PyObject* keywords = nullptr;        ///< tuple of names, or null

  Py_ssize_t all() const { return count + (keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords)); }
  /// The index of a parameter among `objects`; negative if it is not given.
  Py_ssize_t index_of(const SeenParameter& parameter) const;
};

/// Views of tensors of Python libraries; keeps the views and what the libraries lent. Used with the
/// GIL held.
class ReadTensors {
 public:
  /// Reads an object as a tensor; null if it is none, or one that cannot be described.
  const TensorView* read(PyObject* object);
  /// Reads a result that is a tensor, or a tuple or list of tensors, all of them in memory that
  /// this process can read. False if it is anything else.
  bool read_result(PyObject* result, std::vector<TensorView>& tensors);

 private:
  std::deque<TensorView> views_;
  std::deque<TensorSlot> lent_;  ///< of tensors that are read through `__dlpack__`
};

/// The tensors among the arguments of a dispatchable function, as arguments of its operator.
/// Everything else is absent. Used with the GIL held.
class OpaqueArguments {
 public:
  OpaqueArguments(const std::vector<SeenParameter>& seen, const GivenArguments& given);
  OpaqueArguments(const OpaqueArguments&) = delete;
  OpaqueArguments& operator=(const OpaqueArguments&) = delete;

  const CallSite& site() const { return site_; }
  const ArgValue* values() const { return values_.data(); }
  bool is_tensor(uint32_t argument) const { return site_.tag(argument) == ArgTag::tensor; }

 private:
  CallSite site_;
  std::array<ArgValue, OPMUX_MAX_ARGS> values_;
  ReadTensors tensors_;
};

}  // namespace opmux::python
