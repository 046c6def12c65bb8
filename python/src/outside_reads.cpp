#include "outside_reads.hpp"

#include <frameobject.h>

#include <string>

#include "gil.hpp"

namespace opmux::python {
namespace {

PyObject* environ_codes = nullptr;  ///< tuple of code objects; the first is that of __getitem__
PyObject* torch_module = nullptr;   ///< torch._C; null if it is not imported

/// The profile hook of a thread: the function and its argument.
struct Hook {
  Py_tracefunc function = nullptr;
  Reference argument;
};

Hook hook_of_thread() {
  const PyThreadState* const thread = PyThreadState_Get();
  return {thread->c_profilefunc, Reference::borrow(thread->c_profileobj)};
}

/// The argument of the hook.
struct Watch {
  PyObject* note = nullptr;
  Hook before;
};
constexpr const char* kWatch = "opmux.watch";

bool tell(const Watch& watch, PyObject* name) {
  const Reference text = Reference::steal(name);
  if (!text) return false;
  const Reference noted = Reference::steal(PyObject_CallOneArg(watch.note, text.get()));
  return static_cast<bool>(noted);
}

/// The local variable `key` of a frame that starts; null without an exception if there is none.
Reference key_of(PyFrameObject* frame) {
  const Reference locals =
      Reference::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_locals"));
  Reference key =
      locals ? Reference::steal(PyMapping_GetItemString(locals.get(), "key")) : Reference();
  if (!key) PyErr_Clear();
  return key;
}

bool note_environ(const Watch& watch, PyFrameObject* frame) {
  const Reference code = Reference::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(environ_codes); ++i) {
    if (PyTuple_GET_ITEM(environ_codes, i) != code.get()) continue;
    const Reference key = i == 0 ? key_of(frame) : Reference();
    return tell(watch, key ? PyUnicode_FromFormat("os.environ[%R]", key.get())
                           : PyUnicode_FromString("os.environ"));
  }
  return true;
}

bool note_function(const Watch& watch, PyObject* function) {
  if (torch_module == nullptr || PyCFunction_Check(function) == 0) return true;
  if (PyCFunction_GET_SELF(function) != torch_module) return true;
  const char* const name = reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name;
  return tell(watch, PyUnicode_FromFormat("torch.%s", name));
}

/// The profile hook: sees each start of a Python function and each call of a function in C.
int on_event(PyObject* argument, PyFrameObject* frame, int what, PyObject* about) {
  const auto& watch = *static_cast<Watch*>(PyCapsule_GetPointer(argument, kWatch));
  bool fine = true;
  if (what == PyTrace_CALL && environ_codes != nullptr) fine = note_environ(watch, frame);
  if (what == PyTrace_C_CALL) fine = note_function(watch, about);
  if (!fine) return -1;
  if (watch.before.function == nullptr) return 0;
  return watch.before.function(watch.before.argument.get(), frame, what, about);
}

/// Sets the hook of the thread for a block.
class Watching {
 public:
  explicit Watching(Watch& watch)
      : capsule_(Reference::steal(PyCapsule_New(&watch, kWatch, nullptr))) {
    if (!capsule_) return;
    before_ = watch.before = hook_of_thread();
    PyEval_SetProfile(on_event, capsule_.get());
  }
  ~Watching() {
    if (!capsule_) return;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);  // setting a hook runs audit hooks
    PyEval_SetProfile(before_.function, before_.argument.get());
    PyErr_Restore(type, value, trace);
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  explicit operator bool() const { return static_cast<bool>(capsule_); }

 private:
  Reference capsule_;
  Hook before_;
};

}  // namespace

void watch_reads_of(PyObject* codes, PyObject* module) {
  Py_XINCREF(codes);
  Py_XINCREF(module);
  environ_codes = codes;
  torch_module = module;
}

PyObject* call_watched(PyObject* function, PyObject* args, PyObject* kwargs, PyObject* note) {
  Watch watch{note, {}};
  const Watching watching(watch);
  if (!watching) return nullptr;
  return guarded([&] { return PyObject_Call(function, args, kwargs); });
}

}  // namespace opmux::python
