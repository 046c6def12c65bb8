#include "gil.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace opmux::python {

Py_ssize_t blocks_without_gil = 0;

namespace {

using Clock = std::chrono::steady_clock;

/// How long the end of the interpreter waits for Python code that the engine called, and the end of
/// the process for kernels.
constexpr std::chrono::milliseconds kDrain{1000};
/// How long a thread of Python waits, after that, for the interpreter to finalize. The interpreter
/// usually does so at once. If functions of atexit still run, they may wait for the thread.
constexpr std::chrono::milliseconds kHold{100};
constexpr std::chrono::milliseconds kPoll{1};

/// Calls from the engine into Python.
struct Gate {
  std::atomic<bool> closed{false};  ///< the interpreter is about to finalize
  std::atomic<bool> gone{false};    ///< the interpreter is finalized
  std::atomic<Clock::rep> held_until{0};
  std::atomic<int> inside{0};  ///< number of threads inside Python code that the engine called
  std::atomic<Py_ssize_t> blocked{0};  ///< blocks without the GIL that block_thread() stopped
};
Gate gate;

/// The part of the calling thread.
struct Here {
  int inside = 0;              ///< nested calls from the engine into Python
  Py_ssize_t without_gil = 0;  ///< nested blocks without the GIL
  bool ends_interpreter = false;
};
thread_local constinit Here here __attribute__((tls_model("initial-exec"))) = {};

bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#else
  return _Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#endif
}

template <class Condition>
void wait_for(Condition&& condition) {
  const Clock::time_point end = Clock::now() + kDrain;
  while (!condition() && Clock::now() < end) std::this_thread::sleep_for(kPoll);
}

/// Like PyGILState_Check(), which returns true on every thread once there was a subinterpreter.
bool holds_gil() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  const PyThreadState* const current = PyThreadState_GetUnchecked();
#else
  const PyThreadState* const current = _PyThreadState_UncheckedGet();
#endif
  return current != nullptr && current == PyGILState_GetThisThreadState();
}

bool is_python_thread() noexcept {
  return here.without_gil > 0 || PyGILState_GetThisThreadState() != nullptr;
}

/// Holds a thread of Python back until the interpreter finalizes, which blocks the thread, or
/// evidently does not. The thread is counted in gate.inside.
void hold() noexcept {
  PyThreadState* const state = holds_gil() ? release_gil() : nullptr;
  gate.inside.fetch_sub(1);
  while (!is_cut_off() && Clock::now().time_since_epoch().count() < gate.held_until.load()) {
    std::this_thread::sleep_for(kPoll);
  }
  gate.inside.fetch_add(1);
  if (is_cut_off()) block_thread();
  if (state != nullptr) take_gil(state);
}

/// Counts the calling thread in gate.inside. Returns false if it may not enter Python.
bool enter() noexcept {
  if (here.inside++ > 0 || here.ends_interpreter) {
    if (!here.ends_interpreter && is_cut_off()) block_thread();
    if (!gate.gone.load()) return true;
    --here.inside;
    return false;
  }
  gate.inside.fetch_add(1);
  if (!gate.closed.load() && !is_cut_off()) [[likely]]
    return true;
  if (is_python_thread()) {
    hold();
    return true;
  }
  gate.inside.fetch_sub(1);
  --here.inside;
  return false;
}

void leave() noexcept {
  if (--here.inside == 0 && !here.ends_interpreter) gate.inside.fetch_sub(1);
}

/// The function of atexit: from now on, threads of the engine do not enter Python. Waits for those
/// that are inside.
PyObject* end_calls(PyObject*, PyObject*) {
  if (!here.ends_interpreter && here.inside > 0) gate.inside.fetch_sub(1);
  here.ends_interpreter = true;
  gate.held_until.store(Clock::time_point::max().time_since_epoch().count());
  gate.closed.store(true);
  {
    const ReleasedGil released;
    wait_for([] { return gate.inside.load() == 0; });
  }
  gate.held_until.store((Clock::now() + kHold).time_since_epoch().count());
  Py_RETURN_NONE;
}

PyMethodDef end_method = {"end_calls", end_calls, METH_NOARGS, nullptr};

/// Runs when the interpreter is finalized. Waits for kernels that still run on threads of Python,
/// because the destructors of libraries that they use run next.
void wait_for_kernels() {
  gate.gone.store(true);
  wait_for([] { return gate.blocked.load() >= blocks_without_gil; });
}

/// A forked child has only the thread that forked.
void after_fork() {
  gate.inside.store(here.inside > 0 && !here.ends_interpreter ? 1 : 0);
  gate.blocked.store(0);
  blocks_without_gil = here.without_gil;
}

}  // namespace

bool is_cut_off() noexcept { return !here.ends_interpreter && is_finalizing(); }

void block_thread() noexcept {
  gate.blocked.fetch_add(here.without_gil);
  for (;;) ::pause();
}

PyThreadState* release_gil() noexcept {
  ++blocks_without_gil;
  ++here.without_gil;
  return PyEval_SaveThread();
}

void take_gil(PyThreadState* state) noexcept {
  if (is_cut_off()) block_thread();
  guarded([&] { PyEval_RestoreThread(state); });
  --here.without_gil;
  --blocks_without_gil;
}

WithGil::WithGil() noexcept : entered_(enter()) {
  if (entered_) state_ = guarded([] { return PyGILState_Ensure(); });
}

WithGil::~WithGil() {
  if (!entered_) return;
  guarded([&] { PyGILState_Release(state_); });
  leave();
}

bool calls_never_return() noexcept { return is_finalizing() && gate.inside.load() > 0; }

bool watch_end_of_interpreter() {
  const Reference atexit = Reference::steal(PyImport_ImportModule("atexit"));
  const Reference function = Reference::steal(PyCFunction_NewEx(&end_method, nullptr, nullptr));
  if (!atexit || !function) return false;
  const Reference registered =
      Reference::steal(PyObject_CallMethod(atexit.get(), "register", "O", function.get()));
  if (!registered) return false;
  [[maybe_unused]] static const int kWatching = [] {
    pthread_atfork(nullptr, nullptr, after_fork);
    return Py_AtExit(wait_for_kernels);
  }();
  return true;
}

}  // namespace opmux::python
