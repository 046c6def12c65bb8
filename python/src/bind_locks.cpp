#include <optional>
#include <span>
#include <stdexcept>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "kept_function.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void check(const Status& status) {
  if (!status.ok()) throw Error(status);
}

Lockfile freeze(HeldRuntime& own, const std::optional<Lockfile>& lock, std::string_view name) {
  // Released because listeners on other threads may wait for the GIL.
  const ReleasedGil released;
  if (!lock) return own.runtime->lockfile().freeze().value();
  check(own.runtime->lockfile().freeze(*lock, name));
  return *lock;
}

/// The position of the candidate that a Python selector returned, given as an id, a candidate or
/// None. An unknown id gives accepted.size(); other types throw.
std::optional<size_t> position_of(nb::handle answer, std::span<const Candidate> accepted) {
  if (answer.is_none()) return std::nullopt;
  Candidate candidate;
  std::string id;
  if (nb::try_cast(answer, candidate, false)) id = candidate.id;
  if (id.empty() && !nb::try_cast(answer, id, false)) {
    throw nb::type_error("a selector must return a candidate, its id, or None");
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
  PyObject* const pick = kept_function(function);
  Selector selector{
      name, reads, [pick](const Selection& asked) -> std::optional<size_t> {
        if (Py_IsInitialized() == 0) return std::nullopt;
        const WithGil gil;
        if (!gil) return std::nullopt;
        try {
          const std::vector<Candidate> accepted(asked.accepted.begin(), asked.accepted.end());
          const nb::tuple given =
              nb::make_tuple(std::string(asked.op), nb::cast(accepted), facts_of(asked));
          return position_of(called(pick, given), asked.accepted);
        } catch (nb::python_error& error) {
          throw std::runtime_error(error.what());  // copies the text while the GIL is held
        }
      }};
  check(own.runtime->set_selector(selector));
}

}  // namespace

void bind_locks(nb::module_& module) {
  nb::class_<LockedChoice>(module, "LockedChoice",
                           "The implementation locked for one class of calls of an operator.")
      .def_ro("op", &LockedChoice::op)
      .def_ro("when", &LockedChoice::when)
      .def_ro("implementation", &LockedChoice::implementation)
      .def_ro("build_id", &LockedChoice::build_id)
      .def_ro("schema_hash", &LockedChoice::schema_hash)
      .def("__repr__", [](const LockedChoice& own) {
        return "<LockedChoice " + own.implementation + " when " + own.when + ">";
      });
  nb::class_<Lockfile>(module, "Lockfile",
                       "Choices that another runtime can repeat; `str()` gives the text of the "
                       "file.")
      .def_ro("policy_hash", &Lockfile::policy_hash)
      .def_ro("choices", &Lockfile::choices)
      .def_prop_ro("digest", &Lockfile::digest)
      .def_static(
          "parse",
          [](std::string_view text, std::string_view name) {
            return Lockfile::parse(text, name).value();
          },
          nb::arg("text"), nb::arg("name") = "opmux.lock",
          "Parses a lockfile; the error names the line if it is invalid or was edited by hand.")
      .def_static(
          "read", [](const std::string& path) { return Lockfile::read(path).value(); },
          nb::arg("path"), "Reads a lockfile.")
      .def(
          "write", [](const Lockfile& own, const std::string& path) { check(own.write(path)); },
          nb::arg("path"), "Writes the lockfile, replacing the file atomically.")
      .def("__str__", &Lockfile::to_string)
      .def("__repr__", [](const Lockfile& own) {
        return "<Lockfile of " + std::to_string(own.choices.size()) + " choices>";
      });
}

void bind_freezing(nb::class_<HeldRuntime>& runtime) {
  runtime
      .def(
          "lock", [](const HeldRuntime& own) { return own.runtime->lockfile().current(); },
          "Returns the choices made so far outside of scopes.")
      .def("freeze", &freeze, nb::arg("lock").none() = nb::none(), nb::arg("name") = "opmux.lock",
           "Freezes the runtime with the choices made so far, or with those of a lockfile.")
      .def(
          "check_lock",
          [](const HeldRuntime& own, const Lockfile& lock, std::string_view name) {
            check(own.runtime->lockfile().check(lock, name));
          },
          nb::arg("lock"), nb::arg("name") = "opmux.lock",
          "Raises an error that lists all differences if freeze would reject the lockfile.")
      .def("set_selector", &set_selector, nb::arg("function").none(),
           nb::arg("reads") = std::vector<std::string>(), nb::arg("name") = "selector",
           "Calls function(op, accepted, facts) for each decision. It returns one of the accepted "
           "candidates, or None to keep the default choice. Passing None removes the selector.")
      .def_prop_ro("frozen",
                   [](const HeldRuntime& own) { return own.runtime->lockfile().frozen(); });
}

}  // namespace opmux::python
