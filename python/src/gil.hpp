#pragma once

#include "reference.hpp"

#include <cxxabi.h>

/// Entering and leaving the interpreter, also while it ends.
///
/// Once the interpreter finalizes, CPython before 3.14 ends every other thread that takes the GIL
/// with pthread_exit. Its forced unwinding aborts the process at the first noexcept function, and
/// the functions of the engine are noexcept. The classes below therefore keep threads of the engine
/// away from the interpreter, and block threads of Python forever, as CPython 3.14 does.
namespace opmux::python {

/// Whether the interpreter finalizes or is gone, and another thread than this one ends it.
bool is_cut_off() noexcept;

/// Blocks the calling thread until the process ends.
[[noreturn]] void block_thread() noexcept;

/// Calls `call`, which may run Python code, and blocks the thread if the interpreter ends it
/// meanwhile. `call` should have no local objects with destructors, because they would run without
/// the GIL.
template <class Call>
decltype(auto) guarded(Call&& call) {
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    if (is_cut_off()) block_thread();
    throw;
  }
}

/// Calls a Python function with one argument. Null with an exception set on failure.
inline Reference call_with(PyObject* function, PyObject* argument) {
  return Reference::steal(guarded([&] { return PyObject_CallOneArg(function, argument); }));
}

/// Releases the GIL, which the calling thread holds. take_gil() takes it again.
PyThreadState* release_gil() noexcept;
/// Blocks the thread forever if the interpreter ends.
void take_gil(PyThreadState* state) noexcept;

/// Releases the GIL for a block.
class ReleasedGil {
 public:
  ReleasedGil() : state_(release_gil()) {}
  ~ReleasedGil() { take_gil(state_); }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Acquires the GIL for a block, on any thread. False on a thread of the engine while the
/// interpreter ends: the block must not use Python then.
class WithGil {
 public:
  WithGil() noexcept;
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  bool entered_;
  PyGILState_STATE state_{};
};

/// Whether the interpreter finalizes while a thread is inside Python code that the engine called.
/// That call never returns, so the caller must not wait for it.
bool calls_never_return() noexcept;

/// Number of blocks that are running without the GIL, on all threads. Used with the GIL held.
extern Py_ssize_t blocks_without_gil;

/// Registers the functions below with the interpreter; called once, when the module is imported.
/// Returns false with an exception set on failure.
bool watch_end_of_interpreter();

}  // namespace opmux::python
