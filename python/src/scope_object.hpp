#pragma once

#include "reference.hpp"

#include <opmux/operator.hpp>
#include <opmux/policy.hpp>

namespace opmux::python {

/// A scope of calls from Python: policy, options and report lists. A context variable holds the
/// current one, so that it follows tasks and threads.
struct ScopeObject {
  PyObject_HEAD struct Content {
    const Runtime* runtime = nullptr;
    Scope scope;
    CallOptions options;
    bool has_options = false;
    uint32_t ambient = 0;    ///< OPMUX_AMBIENT_* that this scope or an outer one sets
    Reference reports;       ///< list that gets a report of every call; null if not collecting
    bool reporting = false;  ///< this scope or an outer one collects reports
    Reference outer;         ///< the enclosing scope; null if none
  };
  Content* content;
};

/// Creates the type and the context variable; null with an exception set if that fails.
PyTypeObject* make_scope_type();
PyObject* scope_variable();

/// Returns a new scope object that has not been entered.
Reference make_scope(ScopeObject::Content content);
/// The content of a scope object; null if the object has another type.
ScopeObject::Content* content_of(PyObject* object);

/// Number of live scope objects. While it is 0, calls do not read the context variable.
extern Py_ssize_t scopes_alive;

/// A scope with a reference that keeps it alive, even if its block ends meanwhile.
struct CurrentScope {
  Reference held;
  const ScopeObject::Content* content = nullptr;
};
/// The innermost scope of a runtime around this call; `content` is null if there is none.
CurrentScope current_scope(const Runtime& runtime);

}  // namespace opmux::python
