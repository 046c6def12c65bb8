#pragma once

#include "reference.hpp"

#include <atomic>

#include "argument_frame.hpp"

namespace opmux::python {

/// A call from Python that is now inside the engine. Python implementations use it to get the same
/// objects that the caller passed.
struct CallRecord {
  const dispatch::OperatorSlot* slot = nullptr;
  ArgumentFrame* frame = nullptr;
  Reference raised = {};  ///< last exception of a Python implementation
  CallRecord* outer = nullptr;
  bool stopped = false;  ///< `raised` is not an Exception (KeyboardInterrupt, SystemExit)
};

/// The innermost call of this thread; null if there is none.
extern thread_local constinit CallRecord* current_call __attribute__((tls_model("initial-exec")));

/// Number of registered Python implementations. While it is 0, calls skip the record.
extern std::atomic<int> python_kernels;

}  // namespace opmux::python
