#pragma once

#include "reference.hpp"

#include <opmux/operator.hpp>
#include <opmux/scope.hpp>

namespace opmux::python {

/// What surrounds calls in Python: carried by a context variable, so that it follows tasks and
/// threads as the language has it.
struct ScopeObject {
  PyObject_HEAD struct Content {
    const Runtime* runtime = nullptr;
    Scope scope;
    CallOptions options;
    bool has_options = false;
    Reference reports;       ///< a list that gets a report of every call; null: nobody asks
    bool reporting = false;  ///< this one or one around it has such a list
    Reference outer;         ///< the scope around this one; null if none
  };
  Content* content;
};

/// Makes the type and the context variable; null with an exception set if that fails.
PyTypeObject* make_scope_type();
PyObject* scope_variable();

/// A new scope, not yet entered.
Reference make_scope(ScopeObject::Content content);
/// The content of a scope object; null if it is something else.
ScopeObject::Content* content_of(PyObject* object);

/// How many scope objects live: while there are none, no call looks for one.
extern Py_ssize_t scopes_alive;

/// A scope that stays while it is looked at, also if the block that it surrounds ends.
struct CurrentScope {
  Reference held;
  const ScopeObject::Content* content = nullptr;
};
/// The innermost scope of a runtime around this call; without content if there is none.
CurrentScope current_scope(const Runtime& runtime);

}  // namespace opmux::python
