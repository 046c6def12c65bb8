#include "callable_types.hpp"

#include <structmember.h>

#include "engine_call.hpp"
#include "errors.hpp"
#include "held_instance.hpp"

namespace opmux::python {
namespace {

PyTypeObject* operator_type = nullptr;
PyTypeObject* plan_type = nullptr;

struct OperatorObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OperatorCall* call;
};

struct PlanObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Plan* plan;
  PyObject* op;
  bool busy;  ///< a call is running, possibly without the GIL
};

/// Reserves a plan for one call; false if another call is running it.
class Occupied {
 public:
  explicit Occupied(PlanObject& plan) : plan_(plan.busy ? nullptr : &plan) {
    if (plan_ != nullptr) plan_->busy = true;
  }
  ~Occupied() {
    if (plan_ != nullptr) plan_->busy = false;
  }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;
  explicit operator bool() const { return plan_ != nullptr; }

 private:
  PlanObject* plan_;
};

PyObject* raise_busy() {
  raise(Code::failed, "python.plan_busy",
        "another call is running this plan: bind one plan per thread");
  return nullptr;
}

OperatorObject* as_operator(PyObject* object) { return reinterpret_cast<OperatorObject*>(object); }
PlanObject* as_plan(PyObject* object) { return reinterpret_cast<PlanObject*>(object); }

void free_object(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void free_operator(PyObject* self) {
  delete as_operator(self)->call;
  free_object(self);
}

void free_plan(PyObject* self) {
  delete as_plan(self)->plan;
  Py_XDECREF(as_plan(self)->op);
  free_object(self);
}

PyObject* vectorcall_operator(PyObject* self, PyObject* const* args, size_t count,
                              PyObject* keywords) {
  return as_operator(self)->call->call(args, PyVectorcall_NARGS(count), keywords);
}

PyObject* call_allocating(const OperatorCall& op, Plan& plan, ArgumentFrame& frame) {
  std::vector<Reference> made;
  return allocate_outputs(op.op(), frame, made) ? call_plan(op, plan, frame) : nullptr;
}

PyObject* vectorcall_plan(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  OperatorCall& op = *as_operator(as_plan(self)->op)->call;
  const Occupied occupied(*as_plan(self));
  if (!occupied) return raise_busy();
  const OperatorCall::Lease frame(op);
  const ArgumentFrame::Converted converted =
      frame->take(args, PyVectorcall_NARGS(count), keywords, true);
  Plan& plan = *as_plan(self)->plan;
  if (converted == ArgumentFrame::Converted::ok) [[likely]] {
    return frame->lacks_output() ? call_allocating(op, plan, *frame) : call_plan(op, plan, *frame);
  }
  if (converted == ArgumentFrame::Converted::reroute) {
    raise(Code::outside_plan, "python.reroute",
          "a plan accepts only plain torch tensors that do not require grad");
  }
  return nullptr;
}

PyMemberDef operator_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMemberDef plan_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PlanObject, vectorcall), READONLY, nullptr},
    {"operator", T_OBJECT, offsetof(PlanObject, op), READONLY, "The operator of the plan."},
    {nullptr, 0, 0, 0, nullptr}};

PyObject* text(const std::string& words) {
  return PyUnicode_FromStringAndSize(words.data(), static_cast<Py_ssize_t>(words.size()));
}

PyObject* get_name(PyObject* self, void*) {
  return text(as_operator(self)->call->signature().name());
}
PyObject* get_schema(PyObject* self, void*) { return text(as_operator(self)->call->op().schema()); }
PyObject* get_signature(PyObject* self, void*) {
  return text(as_operator(self)->call->signature().text());
}
PyObject* get_function(PyObject* self, void*) { return as_operator(self)->call->function(self); }

PyGetSetDef operator_fields[] = {
    {"name", get_name, nullptr, "The operator's name.", nullptr},
    {"schema", get_schema, nullptr, "The canonical text of the operator's schema.", nullptr},
    {"signature", get_signature, nullptr, "The Python call signature as text.", nullptr},
    {"function", get_function, nullptr, "The operator as a builtin function.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* get_state(PyObject* self, void*) {
  static const char* const words[] = {"current", "stale", "revoked"};
  return PyUnicode_FromString(words[static_cast<size_t>(as_plan(self)->plan->state())]);
}
PyObject* get_implementation(PyObject* self, void*) {
  return text(as_plan(self)->plan->implementation());
}
PyObject* get_generation(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(as_plan(self)->plan->generation());
}

PyObject* call_plan_function(PyObject* self, PyObject* const* args, Py_ssize_t count,
                             PyObject* keywords) {
  return vectorcall_plan(self, args, static_cast<size_t>(count), keywords);
}

PyMethodDef plan_function = {"plan", as_method(call_plan_function), METH_FASTCALL | METH_KEYWORDS,
                             "Calls the plan."};

PyObject* get_plan_function(PyObject* self, void*) {
  return PyCFunction_NewEx(&plan_function, self, nullptr);
}

PyGetSetDef plan_fields[] = {
    {"function", get_plan_function, nullptr,
     "The plan as a builtin function, which CPython calls faster than the object.", nullptr},
    {"state", get_state, nullptr, "'current', 'stale' or 'revoked'.", nullptr},
    {"implementation", get_implementation, nullptr,
     "The id of the implementation that the plan runs.", nullptr},
    {"generation", get_generation, nullptr,
     "The generation of the snapshot that the decision was made in.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* refresh_plan(PyObject* self, PyObject*) {
  const Occupied occupied(*as_plan(self));
  if (!occupied) return raise_busy();
  const Status status = as_plan(self)->plan->refresh();
  if (status.ok()) Py_RETURN_NONE;
  raise(status);
  return nullptr;
}

PyMethodDef plan_methods[] = {{"refresh", refresh_plan, METH_NOARGS,
                               "Decides again for arguments like those the plan was bound with."},
                              {nullptr, nullptr, 0, nullptr}};

PyObject* bind_arguments(PyObject* self, PyObject* const* args, Py_ssize_t count,
                         PyObject* keywords) {
  OperatorCall& op = *as_operator(self)->call;
  const OperatorCall::Lease frame(op);
  std::vector<Reference> made;
  if (frame->take(args, count, keywords) != ArgumentFrame::Converted::ok) {
    if (PyErr_Occurred() == nullptr) frame->raise_not_taken();
    return nullptr;
  }
  if (frame->lacks_output() && !allocate_outputs(op.op(), *frame, made)) return nullptr;
  const Surroundings around(*op.runtime().runtime);
  auto plan = op.bind(*frame, false);
  if (plan) return new_plan(self, std::move(*plan));
  raise(plan.error());
  return nullptr;
}

PyObject* make_instance(PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* keywords) {
  if (count == 0) return new_instance(self, args, keywords);
  raise(Code::invalid_argument, "python.arguments",
        "instance() takes the arguments that it fixes by name");
  return nullptr;
}

PyMethodDef operator_methods[] = {
    {"instance", as_method(make_instance), METH_FASTCALL | METH_KEYWORDS,
     "Fixes arguments by name and returns an instance, in which implementations keep state."},
    {"bind", as_method(bind_arguments), METH_FASTCALL | METH_KEYWORDS,
     "Decides once for arguments like these and returns a plan, whose calls skip the lookup."},
    {nullptr, nullptr, 0, nullptr}};

PyObject* show_operator(PyObject* self) {
  return PyUnicode_FromFormat("<opmux operator %s>",
                              as_operator(self)->call->signature().text().c_str());
}
PyObject* show_plan(PyObject* self) {
  return PyUnicode_FromFormat("<opmux plan of %s>", as_plan(self)->plan->implementation().c_str());
}

template <class F>
void* slot_function(F* function) {
  return reinterpret_cast<void*>(function);
}

constexpr unsigned kFlags =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;

}  // namespace

PyTypeObject* make_operator_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot_function(free_operator)},
      {Py_tp_call, slot_function(PyVectorcall_Call)},
      {Py_tp_repr, slot_function(show_operator)},
      {Py_tp_members, operator_members},
      {Py_tp_getset, operator_fields},
      {Py_tp_methods, operator_methods},
      {Py_tp_doc, const_cast<char*>("An operator. Call it, or bind it to get a plan.")},
      {0, nullptr}};
  PyType_Spec spec = {"opmux.Operator", sizeof(OperatorObject), 0, kFlags, slots};
  return operator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyTypeObject* make_plan_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot_function(free_plan)},
      {Py_tp_call, slot_function(PyVectorcall_Call)},
      {Py_tp_repr, slot_function(show_plan)},
      {Py_tp_members, plan_members},
      {Py_tp_getset, plan_fields},
      {Py_tp_methods, plan_methods},
      {Py_tp_doc,
       const_cast<char*>("A bound decision: calls run its implementation without a lookup.")},
      {0, nullptr}};
  PyType_Spec spec = {"opmux.Plan", sizeof(PlanObject), 0, kFlags, slots};
  return plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyObject* new_operator(PyObject* runtime_object, HeldRuntime& held, const Operator& op) {
  PyObject* const self = operator_type->tp_alloc(operator_type, 0);
  if (self == nullptr) return nullptr;
  as_operator(self)->vectorcall = vectorcall_operator;
  as_operator(self)->call = new OperatorCall(Reference::borrow(runtime_object), held, op);
  return self;
}

PyObject* new_plan(PyObject* operator_object, Plan plan) {
  PyObject* const self = plan_type->tp_alloc(plan_type, 0);
  if (self == nullptr) return nullptr;
  as_plan(self)->vectorcall = vectorcall_plan;
  as_plan(self)->plan = new Plan(std::move(plan));
  Py_INCREF(operator_object);
  as_plan(self)->op = operator_object;
  return self;
}

OperatorCall* operator_of(PyObject* object) {
  return Py_TYPE(object) == operator_type ? as_operator(object)->call : nullptr;
}

Plan* plan_of(PyObject* object) {
  return Py_TYPE(object) == plan_type ? as_plan(object)->plan : nullptr;
}

}  // namespace opmux::python
