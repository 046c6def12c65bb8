#pragma once

#include "reference.hpp"

#include <atomic>

#include "argument_frame.hpp"

namespace opmux::python {

/// A call that came from Python and is inside of the engine now: implementations that are Python
/// functions get the very objects that the caller gave.
struct CallRecord {
  const dispatch::OperatorSlot* slot = nullptr;
  ArgumentFrame* frame = nullptr;
  Reference raised = {};  ///< what a Python implementation raised last
  CallRecord* outer = nullptr;
  bool stopped = false;  ///< that was no error: the program is to end
};

/// The innermost one of this thread; null if there is none.
extern thread_local constinit CallRecord* current_call __attribute__((tls_model("initial-exec")));

/// How many Python implementations are registered: while there are none, calls keep no record.
extern std::atomic<int> python_kernels;

}  // namespace opmux::python
