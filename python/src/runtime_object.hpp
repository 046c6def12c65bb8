#pragma once

#include "reference.hpp"

#include <map>
#include <memory>
#include <string>

#include <opmux/runtime.hpp>

#include "constants.hpp"

namespace opmux::python {

/// A runtime as Python holds it.
struct HeldRuntime {
  explicit HeldRuntime(Runtime made)
      : own(std::make_unique<Runtime>(std::move(made))), runtime(own.get()), constants(*runtime) {}
  explicit HeldRuntime(Runtime& shared) : runtime(&shared), constants(shared) {}
  ~HeldRuntime() {
    if (own == nullptr) return;
    // Its thread may wait for the GIL, to tell a listener.
    PyThreadState* const state = PyEval_SaveThread();
    own->end_thread();
    PyEval_RestoreThread(state);
  }

  std::unique_ptr<Runtime> own;  ///< null for the process's default one
  Runtime* runtime;
  ParameterConstants constants;
  /// Implementations in Python, by id: they go with the runtime, or when they are withdrawn.
  std::map<std::string, Registration> registrations;
};

/// Functions that the package gives to the extension.
struct Hooks {
  Reference allocate;  ///< (like, shape, dtype name, device) -> tensor of the library of `like`
  Reference reroute;   ///< (operator name, args, kwargs): the call, made by torch
};
Hooks& hooks();

/// Calls that write this many elements to a tensor give the GIL away.
extern int64_t release_gil_from;

}  // namespace opmux::python
