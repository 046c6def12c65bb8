#include "dispatcher.hpp"

#include <structmember.h>

#include "dispatch_call.hpp"
#include "gil.hpp"
#include "scope_object.hpp"

namespace opmux::python {
namespace {

PyTypeObject* dispatcher_type = nullptr;
uint64_t times_forgotten = 1;

struct DispatcherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak;
  Dispatcher* own;
};

DispatcherObject* as_object(PyObject* object) {
  return reinterpret_cast<DispatcherObject*>(object);
}
Dispatcher& own_of(PyObject* object) { return *as_object(object)->own; }

/// Positional and named arguments as a tuple and a dictionary.
struct Collected {
  explicit Collected(const GivenArguments& given)
      : positional(Reference::steal(PyTuple_New(given.count))),
        named(Reference::steal(PyDict_New())) {
    for (Py_ssize_t i = 0; positional && i < given.count; ++i) {
      Py_INCREF(given.objects[i]);
      PyTuple_SET_ITEM(positional.get(), i, given.objects[i]);
    }
    for (Py_ssize_t i = given.count; named && i < given.all(); ++i) {
      PyDict_SetItem(named.get(), PyTuple_GET_ITEM(given.keywords, i - given.count),
                     given.objects[i]);
    }
  }
  explicit operator bool() const { return positional && named; }
  Reference positional, named;
};

PyObject* call_slowly(const Dispatcher& own, const GivenArguments& given) {
  const Collected all(given);
  if (!all) return nullptr;
  const Reference slow = own.slow;
  return guarded([&] {
    return PyObject_CallFunctionObjArgs(slow.get(), all.positional.get(), all.named.get(), nullptr);
  });
}

/// Whether torch.compile has replaced the interpreter's frame evaluation function.
bool is_watched() {
  return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) != _PyEval_EvalFrameDefault;
}

/// Does what torch.compiler.disable does, so that neither our Python code nor the implementations
/// are compiled. It does not import torch, and it must run before any Python code of ours.
void disable_compiling(Dispatcher& own) {
  PyObject* const dynamo = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._dynamo");
  if (dynamo == nullptr || own.not_compiled) return;
  own.not_compiled = true;
  Reference disabled =
      Reference::steal(PyObject_CallMethod(dynamo, "disable", "O", own.slow.get()));
  if (!disabled) PyErr_Clear();
  if (disabled) own.slow = std::move(disabled);
}

PyObject* call_dispatcher(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
  Dispatcher& own = own_of(self);
  const GivenArguments given{args, PyVectorcall_NARGS(flags), keywords};
  if (is_watched()) [[unlikely]] {
    disable_compiling(own);
    return call_slowly(own, given);
  }
  if (!own.is_current()) [[unlikely]]
    return call_slowly(own, given);
  if (own.body != nullptr) [[unlikely]]
    return PyObject_Vectorcall(own.body->function.get(), args, flags, keywords);
  CurrentScope around;
  if (scopes_alive != 0) {
    around = current_scope(*own.runtime);
    if (around.content != nullptr && around.content->reporting) return call_slowly(own, given);
  }
  const DecisionCache::Entry* const entry = own.cache.find(context_of(around), given);
  if (entry == nullptr) [[unlikely]]
    return call_slowly(own, given);
  // The function may call this one again, which may drop the entry.
  const std::shared_ptr<const dispatch::OpaqueDecision> decision = entry->decision;
  DispatchTarget* const target = entry->target;
  if (!decision->direct) [[unlikely]]
    return run_by_engine(own, *decision, given);
  own.last = target;
  ++target->calls;
  const Reference function = target->function;
  PyObject* const result =
      guarded([&] { return PyObject_Vectorcall(function.get(), args, flags, keywords); });
  if (result == nullptr || result == Py_NotImplemented) [[unlikely]]
    return end_by_engine(own, *decision, *target, given, result);
  count_call(*decision);
  return result;
}

void free_dispatcher(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* const type = Py_TYPE(self);
  if (as_object(self)->weak != nullptr) PyObject_ClearWeakRefs(self);
  delete as_object(self)->own;
  Py_CLEAR(as_object(self)->dict);
  type->tp_free(self);
  Py_DECREF(type);
}

int visit_dispatcher(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(self)->dict);
  Py_VISIT(own_of(self).slow.get());
  for (const auto& target : own_of(self).targets) Py_VISIT(target->function.get());
  return 0;
}

int clear_dispatcher(PyObject* self) {
  Dispatcher& own = own_of(self);
  own.cache.clear();
  Py_CLEAR(as_object(self)->dict);
  own.slow = {};
  for (const auto& target : own.targets) target->function = {};
  return 0;
}

PyObject* make_dispatcher(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* slow = nullptr;
  if (PyArg_ParseTuple(args, "O", &slow) == 0) return nullptr;
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  as_object(self)->vectorcall = call_dispatcher;
  as_object(self)->own = new Dispatcher;
  own_of(self).slow = Reference::borrow(slow);
  return self;
}

PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyObject* get_last(PyObject* self, void*) {
  const DispatchTarget* const last = own_of(self).last;
  if (last == nullptr) Py_RETURN_NONE;
  return PyUnicode_FromString(last->id.c_str());
}

PyObject* get_calls(PyObject* self, void*) {
  PyObject* const all = PyDict_New();
  for (const auto& target : own_of(self).targets) {
    const Reference calls = Reference::steal(PyLong_FromUnsignedLongLong(target->calls));
    if (all == nullptr || !calls) return nullptr;
    PyDict_SetItemString(all, target->id.c_str(), calls.get());
  }
  return all;
}

PyObject* get_remembered(PyObject* self, void*) {
  return PyLong_FromSize_t(own_of(self).cache.size());
}

PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(DispatcherObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(DispatcherObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(DispatcherObject, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef fields[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"last", get_last, nullptr, "The id of the implementation that was called last.", nullptr},
    {"calls", get_calls, nullptr, "The number of calls of each implementation, by id.", nullptr},
    {"remembered", get_remembered, nullptr, "The number of cached decisions.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class F>
void* slot_function(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

bool Dispatcher::is_current() {
  if (slot == nullptr) return false;
  if (forgotten == times_forgotten && decided_in == epoch->load(std::memory_order_acquire))
      [[likely]]
    return true;
  cache.clear();
  return false;
}

void Dispatcher::attach(PyObject* object, const Runtime& to, const Operator& op,
                        std::vector<SeenParameter> parameters) {
  cache.clear();
  held = Reference::borrow(object);
  runtime = &to;
  forgotten = times_forgotten;
  name = op.name();
  slot = &op.slot();
  epoch = &dispatch::epoch_of(*slot);
  decided_in = epoch->load(std::memory_order_acquire);
  seen = std::move(parameters);
}

DispatchTarget* Dispatcher::find(std::string_view id) {
  for (const auto& target : targets) {
    if (target->id == id) return target.get();
  }
  return nullptr;
}

Dispatcher* dispatcher_of(PyObject* object) {
  return Py_TYPE(object) == dispatcher_type ? as_object(object)->own : nullptr;
}

void forget_decisions() { ++times_forgotten; }

PyTypeObject* make_dispatcher_type() {
  PyType_Slot slots[] = {
      {Py_tp_new, slot_function(make_dispatcher)},
      {Py_tp_dealloc, slot_function(free_dispatcher)},
      {Py_tp_traverse, slot_function(visit_dispatcher)},
      {Py_tp_clear, slot_function(clear_dispatcher)},
      {Py_tp_call, slot_function(PyVectorcall_Call)},
      {Py_tp_descr_get, slot_function(bind_to)},
      {Py_tp_getattro, slot_function(PyObject_GenericGetAttr)},
      {Py_tp_setattro, slot_function(PyObject_GenericSetAttr)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_getset, fields},
      {Py_tp_doc,
       const_cast<char*>("A function whose calls are dispatched to registered implementations.")},
      {0, nullptr}};
  PyType_Spec spec = {"opmux.Dispatchable", sizeof(DispatcherObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_METHOD_DESCRIPTOR,
                      slots};
  return dispatcher_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace opmux::python
