#pragma once

#include "reference.hpp"

#include <array>

#include <opmux/opmux.h>
#include <opmux/reader.h>

#include "type_readers.hpp"

namespace opmux::python {

/// The form of the last call: the number and names of its arguments, and the layouts of its
/// tensors. A call with the same number and names has its arguments at the same places. Its tensors
/// are compared with those of the last call, all of them at once if a native reader reads them, and
/// nothing else is checked.
struct CallForm {
  struct Argument {
    PyTypeObject* type = nullptr;  ///< type of a tensor that the reader compares; null for others
    const TypeReader* exchanged = nullptr;  ///< how a tensor is exchanged; null for others
    Reference same;        ///< number, str or None: the same object needs no conversion
    uint8_t position = 0;  ///< position in the schema
    bool number = false;   ///< a float parameter: any float object fits
  };

  Py_ssize_t count = -1;  ///< number of positional arguments; -1 if no call is remembered
  Reference names;        ///< tuple of keyword names, or null
  uint64_t readers = 0;   ///< readers_generation at that call
  uint32_t size = 0;
  bool comparable = false;       ///< a tensor is read in place or exchanged
  uint32_t tensors = 0;          ///< number of tensors that `reader` compares
  uint32_t left_out = 0;         ///< number of outputs that the caller did not pass
  bool lacks_output = false;     ///< one of these is required
  int64_t elements_written = 0;  ///< see ArgumentFrame
  const opmux_reader* reader = nullptr;
  std::array<Argument, OPMUX_MAX_ARGS> arguments;
  std::array<opmux_known_tensor, OPMUX_MAX_ARGS> known{};
  std::array<uint8_t, OPMUX_MAX_ARGS> outputs{};  ///< schema positions of the outputs not passed

  /// Compares by identity: names are interned, and a call site mostly passes the same tuple.
  bool has_names(PyObject* keywords) const {
    if (keywords == names.get()) [[likely]]
      return true;
    if (keywords == nullptr || !names) return false;
    const Py_ssize_t named = PyTuple_GET_SIZE(keywords);
    if (named != PyTuple_GET_SIZE(names.get())) return false;
    for (Py_ssize_t i = 0; i < named; ++i) {
      if (PyTuple_GET_ITEM(keywords, i) != PyTuple_GET_ITEM(names.get(), i)) return false;
    }
    return true;
  }
};

}  // namespace opmux::python
