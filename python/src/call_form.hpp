#pragma once

#include "reference.hpp"

#include <array>

#include <opmux/opmux.h>
#include <opmux/reader.h>

namespace opmux::python {

/// How the last call was written and what its arguments were like. A call like it has its tensors
/// compared in one go and nothing else looked at.
struct CallForm {
  struct Argument {
    PyTypeObject* type = nullptr;  ///< of a tensor that is compared in place; null for others
    Reference same;                ///< a number, a word or None: the very object means no change
    uint8_t position = 0;          ///< in the schema
    bool number = false;           ///< any float will do
  };

  Py_ssize_t count = -1;  ///< of arguments without a name; -1: nothing is known
  Reference names;        ///< a tuple, or null
  uint64_t readers = 0;   ///< readers_generation then
  uint32_t size = 0;
  uint32_t tensors = 0;
  uint32_t left_out = 0;  ///< outputs that the call was not given
  const opmux_reader* reader = nullptr;
  std::array<Argument, OPMUX_MAX_ARGS> arguments;
  std::array<opmux_known_tensor, OPMUX_MAX_ARGS> known{};
  std::array<uint8_t, OPMUX_MAX_ARGS> places{};   ///< of `known`, in the schema
  std::array<uint8_t, OPMUX_MAX_ARGS> outputs{};  ///< those left out

  /// Names are interned and mostly in the very tuple of the line that calls.
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
