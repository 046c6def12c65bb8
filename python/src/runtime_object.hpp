#pragma once

#include "reference.hpp"

#include <map>
#include <memory>
#include <string>

#include <opmux/runtime.hpp>

#include "constants.hpp"
#include "gil.hpp"

namespace opmux::python {

/// The content of a Python object of type Runtime.
struct HeldRuntime {
  explicit HeldRuntime(Runtime made)
      : own(std::make_unique<Runtime>(std::move(made))), runtime(own.get()), constants(*runtime) {}
  explicit HeldRuntime(Runtime& shared) : runtime(&shared), constants(shared) {}
  ~HeldRuntime() {
    if (own == nullptr) return;
    if (calls_never_return()) {
      // The destructor of the runtime would wait for these calls, so the runtime is leaked.
      for (auto& [id, registration] : registrations) registration.keep();
      static_cast<void>(own.release());
      return;
    }
    // The maintenance thread may wait for the GIL to call a listener, so release it.
    const ReleasedGil released;
    own->end_thread();
  }

  std::unique_ptr<Runtime> own;  ///< null if the runtime is shared
  Runtime* runtime;
  ParameterConstants constants;
  /// Registrations of Python implementations, by id; dropped with the runtime or when withdrawn.
  std::map<std::string, Registration> registrations;
};

/// Python functions that the package registers with the extension.
struct Hooks {
  Reference allocate;  ///< (like, shape, dtype, device type, id) -> tensor of the library of `like`
  Reference reroute;   ///< (operator name, args, kwargs): makes the call through torch.ops
};
Hooks& hooks();

/// A call releases the GIL if it writes at least this many elements to one tensor.
extern int64_t release_gil_from;

}  // namespace opmux::python
