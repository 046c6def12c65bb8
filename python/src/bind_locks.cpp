#include <optional>
#include <span>
#include <stdexcept>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "runtime_object.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void check(const Status& status) {
  if (!status.ok()) throw Error(status);
}

Lockfile freeze(HeldRuntime& own, const std::optional<Lockfile>& lock, std::string_view name) {
  // Listeners may wait for the interpreter.
  const nb::gil_scoped_release released;
  if (!lock) return own.runtime->freeze().value();
  check(own.runtime->freeze(*lock, name));
  return *lock;
}

/// What a Python function answered: an id, a candidate, or None; throws for anything else.
std::optional<size_t> position_of(nb::handle answer, std::span<const Candidate> accepted) {
  if (answer.is_none()) return std::nullopt;
  Candidate candidate;
  std::string id;
  if (nb::try_cast(answer, candidate, false)) id = candidate.id;
  if (id.empty() && !nb::try_cast(answer, id, false)) {
    throw nb::type_error("a selector answers a candidate, its id, or None");
  }
  for (size_t i = 0; i < accepted.size(); ++i) {
    if (accepted[i].id == id) return i;
  }
  return accepted.size();
}

nb::dict facts_of(const Selection& asked) {
  nb::dict facts;
  for (const SelectorFact& fact : asked.facts) {
    const nb::str name(fact.name.c_str());
    const bool plain = fact.number && fact.text == std::to_string(*fact.number);
    if (!fact.number) {
      facts[name] = nb::none();
    } else if (plain) {
      facts[name] = *fact.number;
    } else {
      facts[name] = fact.text;
    }
  }
  return facts;
}

void set_selector(HeldRuntime& own, const nb::object& function,
                  const std::vector<std::string>& reads, const std::string& name) {
  if (function.is_none()) return check(own.runtime->reset_selector());
  if (PyCallable_Check(function.ptr()) == 0) throw nb::type_error("a function is wanted");
  // Never given back: it may be needed as long as the process lives.
  PyObject* const pick = nb::object(function).release().ptr();
  Selector selector{
      name, reads, [pick](const Selection& asked) -> std::optional<size_t> {
        if (Py_IsInitialized() == 0) return std::nullopt;
        const WithGil gil;
        try {
          const std::vector<Candidate> accepted(asked.accepted.begin(), asked.accepted.end());
          const std::string op(asked.op);
          const nb::object answer = nb::borrow(pick)(op, nb::cast(accepted), facts_of(asked));
          return position_of(answer, asked.accepted);
        } catch (nb::python_error& error) {
          throw std::runtime_error(error.what());  // while the interpreter is held
        }
      }};
  check(own.runtime->set_selector(selector));
}

}  // namespace

void bind_locks(nb::module_& module) {
  nb::class_<LockedChoice>(module, "LockedChoice",
                           "What runs for one class of calls of one operator.")
      .def_ro("op", &LockedChoice::op)
      .def_ro("when", &LockedChoice::when)
      .def_ro("implementation", &LockedChoice::implementation)
      .def_ro("build_id", &LockedChoice::build_id)
      .def_ro("schema_hash", &LockedChoice::schema_hash)
      .def("__repr__", [](const LockedChoice& own) {
        return "<LockedChoice " + own.implementation + " when " + own.when + ">";
      });
  nb::class_<Lockfile>(module, "Lockfile",
                       "Choices that were made once and are to be made again; `str()` gives the "
                       "text of the file.")
      .def_ro("policy_hash", &Lockfile::policy_hash)
      .def_ro("choices", &Lockfile::choices)
      .def_prop_ro("digest", &Lockfile::digest)
      .def_static(
          "parse",
          [](std::string_view text, std::string_view name) {
            return Lockfile::parse(text, name).value();
          },
          nb::arg("text"), nb::arg("name") = "opmux.lock",
          "Reads a text; fails with file and line for what is no lockfile or was changed by hand.")
      .def_static(
          "read", [](const std::string& path) { return Lockfile::read(path).value(); },
          nb::arg("path"), "Reads a file.")
      .def(
          "write", [](const Lockfile& own, const std::string& path) { check(own.write(path)); },
          nb::arg("path"), "Replaces the file as a whole.")
      .def("__str__", &Lockfile::to_string)
      .def("__repr__", [](const Lockfile& own) {
        return "<Lockfile of " + std::to_string(own.choices.size()) + " choices>";
      });
}

void bind_freezing(nb::class_<HeldRuntime>& runtime) {
  runtime
      .def(
          "lock", [](const HeldRuntime& own) { return own.runtime->lock(); },
          "The choices that were made so far outside of scopes.")
      .def("freeze", &freeze, nb::arg("lock").none() = nb::none(), nb::arg("name") = "opmux.lock",
           "Takes no more changes; chooses as so far, or as a lockfile says.")
      .def(
          "check_lock",
          [](const HeldRuntime& own, const Lockfile& lock, std::string_view name) {
            check(own.runtime->check_lock(lock, name));
          },
          nb::arg("lock"), nb::arg("name") = "opmux.lock",
          "Raises with all differences if freeze would not take that lockfile.")
      .def("set_selector", &set_selector, nb::arg("function").none(),
           nb::arg("reads") = std::vector<std::string>(), nb::arg("name") = "selector",
           "Asks function(op, accepted, facts) when something is decided; it answers one of the "
           "accepted candidates, or None to leave the choice. None as function takes it back.")
      .def_prop_ro("frozen", [](const HeldRuntime& own) { return own.runtime->frozen(); });
}

}  // namespace opmux::python
