#include <algorithm>

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "dispatch_call.hpp"
#include "runtime_object.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

Dispatcher& dispatcher(nb::handle object) {
  Dispatcher* const own = dispatcher_of(object.ptr());
  if (own == nullptr) throw nb::type_error("expected a dispatchable function");
  return *own;
}

void add_target(nb::handle self, const std::string& id, nb::handle function, bool body) {
  Dispatcher& own = dispatcher(self);
  own.cache.clear();
  DispatchTarget* target = own.find(id);
  if (target == nullptr) {
    target = own.targets.emplace_back(std::make_unique<DispatchTarget>()).get();
  }
  target->id = id;
  target->function = Reference::borrow(function.ptr());
  target->body = body;
}

/// A parameter that the engine sees: its position among positional arguments, and its name.
using Parameter = std::pair<Py_ssize_t, nb::object>;

void attach(nb::handle self, nb::handle_t<HeldRuntime> runtime, bool decides,
            const std::string& name, const std::vector<Parameter>& parameters) {
  Dispatcher& own = dispatcher(self);
  const Runtime& to = *nb::cast<HeldRuntime&>(runtime).runtime;
  std::vector<SeenParameter> seen;
  for (const auto& [position, word] : parameters) {
    seen.push_back({position, Reference::borrow(word.ptr())});
  }
  own.attach(runtime.ptr(), to, to.op(name).value(), std::move(seen));
  own.body = nullptr;
  for (const auto& target : own.targets) {
    if (!decides && target->body) own.body = target.get();
  }
}

/// The arguments of a call in vectorcall layout; borrows the objects.
struct Given {
  Given(const nb::tuple& args, const nb::dict& kwargs) {
    for (const nb::handle arg : args) objects.push_back(arg.ptr());
    for (const auto& [key, value] : kwargs) objects.push_back(value.ptr());
    if (!kwargs.empty()) keywords = Reference::steal(PySequence_Tuple(kwargs.ptr()));
    arguments = {objects.data(), static_cast<Py_ssize_t>(args.size()), keywords.get()};
  }
  std::vector<PyObject*> objects;
  Reference keywords;
  GivenArguments arguments;
};

nb::object call(nb::handle self, nb::handle asked, const nb::tuple& args, const nb::dict& kwargs) {
  const Given given(args, kwargs);
  PyObject* const result = decide_and_run(dispatcher(self), given.arguments, asked.ptr());
  if (result == nullptr) nb::raise_python_error();
  return nb::steal(result);
}

using Refusals = std::map<std::string, std::pair<std::string, std::string>>;

Explanation explain(nb::handle self, nb::handle asked, const nb::tuple& args,
                    const nb::dict& kwargs) {
  const Given given(args, kwargs);
  return explain_call(dispatcher(self), given.arguments, asked.ptr());
}

/// Replaces the codes and reasons of candidates that Python verifiers refused by those that the
/// verifiers gave, and adds the facts that they read.
Explanation revise(Explanation explanation, std::string arguments, const Refusals& refusals,
                   std::vector<std::string> read) {
  explanation.arguments = std::move(arguments);
  for (std::string& fact : explanation.depends_on) {
    if (std::find(read.begin(), read.end(), fact) == read.end()) read.push_back(std::move(fact));
  }
  explanation.depends_on = std::move(read);
  for (Candidate& candidate : explanation.candidates) {
    const auto refused = refusals.find(candidate.id);
    if (refused == refusals.end() || !candidate.code.starts_with("verify.")) continue;
    std::tie(candidate.code, candidate.reason) = refused->second;
  }
  return explanation;
}

}  // namespace

void bind_dispatchable(nb::module_& module) {
  module.def("dispatchable_add", &add_target);
  module.def("dispatchable_attach", &attach);
  module.def("dispatchable_call", &call);
  module.def("dispatchable_explain", &explain);
  module.def("dispatchable_clear", [](nb::handle self) { dispatcher(self).cache.clear(); });
  module.def("forget_decisions", &forget_decisions);
  module.def("revise_explanation", &revise);
}

}  // namespace opmux::python
