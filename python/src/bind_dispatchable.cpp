#include <algorithm>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "dispatcher.hpp"
#include "kind_words.hpp"
#include "runtime_object.hpp"
#include "scope_object.hpp"

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

void attach(nb::handle self, nb::handle_t<HeldRuntime> runtime, bool decides) {
  Dispatcher& own = dispatcher(self);
  own.attach(runtime.ptr(), *nb::cast<HeldRuntime&>(runtime).runtime);
  own.body = nullptr;
  for (const auto& target : own.targets) {
    if (!decides && target->body) own.body = target.get();
  }
}

/// The arguments of a call in vectorcall layout; borrows the objects.
struct Given {
  Given(const nb::tuple& args, const nb::dict& kwargs)
      : count(static_cast<Py_ssize_t>(args.size())) {
    for (const nb::handle arg : args) objects.push_back(arg.ptr());
    for (const auto& [key, value] : kwargs) objects.push_back(value.ptr());
    if (!kwargs.empty()) keywords = Reference::steal(PySequence_Tuple(kwargs.ptr()));
  }
  Py_ssize_t count;
  std::vector<PyObject*> objects;
  Reference keywords;
};

/// A fact that a decision read: argument, path to an item of it, kind, index, name.
using Question = std::tuple<uint32_t, std::vector<uint32_t>, int, int, nb::object>;

bool ask(const Given& given, const std::vector<Question>& questions,
         std::vector<ArgumentFacts>& facts) {
  for (const auto& [argument, path, kind, index, name] : questions) {
    if (argument >= given.objects.size() || kind < 0 || kind >= kFactKinds) return false;
    ArgumentFacts* own = nullptr;
    for (ArgumentFacts& one : facts) {
      if (one.argument() == argument && one.path() == path) own = &one;
    }
    if (own == nullptr) own = &facts.emplace_back(argument, path);
    const auto fact = static_cast<FactKind>(kind);
    if (!own->ask(given.objects.data(), fact, index, name.ptr())) return false;
  }
  return true;
}

/// Caches a decision. Returns false if it cannot be cached, for example because a fact has no value
/// that can be compared, or because the runtime's generation changed meanwhile.
bool remember(nb::handle self, const std::string& id, uint32_t scope, uint64_t generation,
              uint32_t ambient_read, uint32_t ambient, const std::vector<Question>& questions,
              const nb::tuple& args, const nb::dict& kwargs) {
  Dispatcher& own = dispatcher(self);
  const Given given(args, kwargs);
  DispatchTarget* const target = own.find(id);
  if (target == nullptr || given.objects.size() > DecisionCache::kMostArguments) return false;
  if (own.runtime == nullptr || own.runtime->generation() != generation) return false;
  DecisionCache::Entry entry{scope, ambient_read, ambient, given.count, given.keywords};
  entry.target = target;
  entry.absent = DecisionCache::absent(given.objects.data(), given.objects.size());
  if (!ask(given, questions, entry.facts)) return false;
  if (!own.is_current()) own.generation = generation;
  own.cache.remember(std::move(entry));
  return true;
}

nb::object find_decision(nb::handle self, uint32_t scope, uint32_t ambient, const nb::tuple& args,
                         const nb::dict& kwargs) {
  Dispatcher& own = dispatcher(self);
  if (!own.is_current()) return nb::none();
  const Given given(args, kwargs);
  const DispatchTarget* const target =
      own.cache.find(scope, ambient, given.objects.data(), given.count, given.keywords.get());
  return target == nullptr ? nb::none() : nb::cast(target->id);
}

void note_call(nb::handle self, const std::string& id) {
  Dispatcher& own = dispatcher(self);
  DispatchTarget* const target = own.find(id);
  if (target == nullptr) return;
  own.last = target;
  ++target->calls;
}

/// Registers a placeholder for a Python function, so that policy can rank it. The engine never runs
/// it.
Registration implement_marker(HeldRuntime& held, const std::string& id, const std::string& kind,
                              const std::string& vendor, int priority, uint32_t flags,
                              std::optional<bool> default_enable) {
  Implementation marker{.id = id, .kind = kind_of(kind), .vendor = vendor, .priority = priority};
  marker.flags = flags;
  marker.default_enable = default_enable;
  marker.kernel.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_DECLINED; };
  return held.runtime->implement(marker).value();
}

using Refusals = std::map<std::string, std::pair<std::string, std::string>>;

/// Adds the refusals of Python verifiers to an explanation and moves refused candidates to the end.
Explanation revise(Explanation explanation, std::string arguments, const Refusals& refusals,
                   std::vector<std::string> depends_on) {
  explanation.arguments = std::move(arguments);
  explanation.depends_on = std::move(depends_on);
  for (Candidate& candidate : explanation.candidates) {
    const auto refused = refusals.find(candidate.id);
    if (!candidate.accepted() || refused == refusals.end()) continue;
    candidate.verdict = "refused";
    std::tie(candidate.code, candidate.reason) = refused->second;
  }
  std::stable_partition(explanation.candidates.begin(), explanation.candidates.end(),
                        [](const Candidate& candidate) { return candidate.accepted(); });
  Candidate* const first =
      explanation.candidates.empty() ? nullptr : &explanation.candidates.front();
  explanation.chosen.clear();
  if (first == nullptr || !first->accepted()) return explanation;
  explanation.chosen = first->id;
  if (first->verdict != "chosen") {
    first->verdict = "chosen";
    first->reason =
        "priority " + std::to_string(first->priority) + ", first of the remaining candidates";
  }
  return explanation;
}

/// The number of the scope around a call of this runtime, and whether it collects reports.
std::pair<uint32_t, bool> scope_around(const HeldRuntime& held) {
  const CurrentScope scope = scopes_alive == 0 ? CurrentScope() : current_scope(*held.runtime);
  if (scope.content == nullptr) return {current_scope_number(), false};
  return {scope.content->scope.number(), scope.content->reporting};
}

void report_call(const HeldRuntime& held, nb::handle fields) {
  const CurrentScope around = current_scope(*held.runtime);
  const ScopeObject::Content* scope = around.content;
  for (; scope != nullptr; scope = content_of(scope->outer.get())) {
    if (scope->reports && PyList_Append(scope->reports.get(), fields.ptr()) != 0) PyErr_Clear();
  }
}

}  // namespace

void bind_dispatchable(nb::module_& module) {
  module.def("dispatchable_add", &add_target);
  module.def("dispatchable_attach", &attach);
  module.def("dispatchable_remember", &remember);
  module.def("dispatchable_find", &find_decision);
  module.def("dispatchable_note_call", &note_call);
  module.def("dispatchable_clear", [](nb::handle self) { dispatcher(self).cache.clear(); });
  module.def("forget_decisions", &forget_decisions);
  module.def("implement_marker", &implement_marker, nb::keep_alive<0, 1>());
  module.def("revise_explanation", &revise);
  module.def("scope_around", &scope_around);
  module.def("report_call", &report_call);
}

}  // namespace opmux::python
