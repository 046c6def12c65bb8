#include "scope_object.hpp"

namespace opmux::python {
namespace {

PyTypeObject* scope_type = nullptr;
PyObject* variable = nullptr;

void deallocate(PyObject* self) {
  delete reinterpret_cast<ScopeObject*>(self)->content;
  --scopes_alive;
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_doc,
     const_cast<char*>(
         "The policy, options and reports of calls in a block; made by opmux.scope and similar.")},
    {0, nullptr},
};
PyType_Spec spec = {"opmux._core.Scope", sizeof(ScopeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

Py_ssize_t scopes_alive = 0;

PyTypeObject* make_scope_type() {
  scope_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  variable = PyContextVar_New("opmux.scope", nullptr);
  return variable == nullptr ? nullptr : scope_type;
}

PyObject* scope_variable() { return variable; }

Reference make_scope(ScopeObject::Content content) {
  Reference made = Reference::steal(scope_type->tp_alloc(scope_type, 0));
  if (!made) return made;
  const ScopeObject::Content* const outer = content_of(content.outer.get());
  content.reporting = content.reports || (outer != nullptr && outer->reporting);
  reinterpret_cast<ScopeObject*>(made.get())->content =
      new ScopeObject::Content(std::move(content));
  ++scopes_alive;
  return made;
}

ScopeObject::Content* content_of(PyObject* object) {
  if (object == nullptr || Py_TYPE(object) != scope_type) return nullptr;
  return reinterpret_cast<ScopeObject*>(object)->content;
}

CurrentScope current_scope(const Runtime& runtime) {
  PyObject* value = nullptr;
  if (PyContextVar_Get(variable, nullptr, &value) != 0 || value == nullptr) return {};
  const ScopeObject::Content* scope = content_of(value);
  while (scope != nullptr && scope->runtime != &runtime) scope = content_of(scope->outer.get());
  return {Reference::steal(value), scope};
}

}  // namespace opmux::python
