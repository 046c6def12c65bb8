#include <chrono>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <opmux/runtime.hpp>

#include "bindings.hpp"
#include "kept_function.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void require_done(const Status& status) {
  if (!status.ok()) throw Error(status);
}

PolicyValidator validator_of(const nb::object& function) {
  PyObject* const judge = kept_function(function);
  return [judge](const Policy& next) -> Status {
    const WithGil gil;
    if (!gil || Py_IsInitialized() == 0) {
      return {Code::unavailable, "policy.validator", "the Python interpreter is ending"};
    }
    const nb::object policy = nb::cast(next);
    const Reference answer = call_with(judge, policy.ptr());
    if (!answer) {
      const Caught caught = catch_exception();
      return {caught.code, "policy.validator", caught.text};
    }
    if (answer.get() == Py_None || answer.get() == Py_True) return {};
    const char* const text =
        PyUnicode_Check(answer.get()) != 0 ? PyUnicode_AsUTF8(answer.get()) : nullptr;
    if (text != nullptr) return {Code::invalid_argument, "policy.validator", text};
    return {Code::invalid_argument, "policy.validator",
            "a validator must return None to accept, or a str with the reason to refuse"};
  };
}

void bind_state(nb::module_& module) {
  nb::class_<PolicyState>(module, "PolicyState",
                          "The policy text in force, and counters of loaded and refused texts.")
      .def_ro("name", &PolicyState::name)
      .def_ro("digest", &PolicyState::digest)
      .def_ro("origin", &PolicyState::origin)
      .def_ro("version", &PolicyState::version)
      .def_ro("generation", &PolicyState::generation)
      .def_ro("rules", &PolicyState::rules)
      .def_ro("expired", &PolicyState::expired)
      .def_ro("unmatched", &PolicyState::unmatched)
      .def_ro("unmatched_rules", &PolicyState::unmatched_rules)
      .def_ro("previous_version", &PolicyState::previous_version)
      .def_ro("loaded", &PolicyState::loaded)
      .def_ro("refused", &PolicyState::refused)
      .def_ro("rolled_back", &PolicyState::rolled_back)
      .def_ro("lapsed", &PolicyState::lapsed)
      .def_prop_ro("last_refusal",
                   [](const PolicyState& own) { return own.last_refusal.message(); })
      .def("to_json", [](const PolicyState& own) { return to_json(own); })
      .def("__repr__", [](const PolicyState& own) {
        return "<PolicyState " + own.name + " version=" + std::to_string(own.version) + ">";
      });
  nb::class_<PolicyChange>(module, "PolicyChange",
                           "A policy text that was put in force or refused.")
      .def_ro("name", &PolicyChange::name)
      .def_ro("digest", &PolicyChange::digest)
      .def_ro("origin", &PolicyChange::origin)
      .def_ro("version", &PolicyChange::version)
      .def_ro("generation", &PolicyChange::generation)
      .def_prop_ro("in_force", [](const PolicyChange& own) { return own.status.ok(); })
      .def_prop_ro("code", [](const PolicyChange& own) { return own.status.reason(); })
      .def_prop_ro("reason", [](const PolicyChange& own) { return own.status.message(); })
      .def("__repr__", [](const PolicyChange& own) {
        return "<PolicyChange " + own.name + (own.status.ok() ? " in force>" : " refused>");
      });
}

void bind_check(nb::module_& module) {
  nb::class_<PolicyFinding>(module, "PolicyFinding",
                            "A warning about a valid policy that may not do what its author meant.")
      .def_ro("code", &PolicyFinding::code)
      .def_ro("where", &PolicyFinding::where)
      .def_ro("rule", &PolicyFinding::rule)
      .def_ro("text", &PolicyFinding::text)
      .def("__repr__", [](const PolicyFinding& own) {
        return "<PolicyFinding " + own.where + ": " + own.text + " [" + own.code + "]>";
      });
  nb::class_<DecisionChange>(
      module, "DecisionChange",
      "The first implementation of an operator before and after a policy change.")
      .def_ro("op", &DecisionChange::op)
      .def_ro("when", &DecisionChange::when)
      .def_ro("before", &DecisionChange::before)
      .def_ro("after", &DecisionChange::after)
      .def_ro("by", &DecisionChange::by)
      .def("__repr__", [](const DecisionChange& own) {
        return "<DecisionChange " + own.op + ": " + own.before + " -> " + own.after + ">";
      });
  nb::class_<PolicyCheck>(module, "PolicyCheck", "The result of check_policy.")
      .def_ro("rules", &PolicyCheck::rules)
      .def_ro("findings", &PolicyCheck::findings)
      .def_ro("changes", &PolicyCheck::changes)
      .def("to_json", [](const PolicyCheck& own) { return to_json(own); });
}

PolicyCheck check_policy(const HeldRuntime& own, std::string_view text, std::string_view name,
                         bool strict_names, std::vector<OperatorInfo> machine) {
  const PolicyCheckOptions options{strict_names, std::move(machine)};
  Result<PolicyCheck> check = PolicyCheck();
  {
    const ReleasedGil released;
    check = own.runtime->policy().check(text, name, options);
  }
  if (!check) throw Error(check.error());
  return std::move(*check);
}

}  // namespace

void bind_policy_sources(nb::module_& module) {
  nb::class_<SourceOptions>(module, "SourceOptions",
                            "The sources of policy besides code, and how they are watched.")
      .def(nb::init<>())
      .def_rw("mode", &SourceOptions::mode)
      .def_rw("config", &SourceOptions::config)
      .def_rw("platform", &SourceOptions::platform)
      .def_rw("lockfile", &SourceOptions::lockfile)
      .def_rw("freeze_at_start", &SourceOptions::freeze_at_start)
      .def_rw("last_known_good", &SourceOptions::last_known_good)
      .def_rw("own_thread", &SourceOptions::own_thread)
      .def_rw("look_at_files", &SourceOptions::look_at_files);
  bind_state(module);
  bind_check(module);
}

void bind_policy_texts(nb::class_<HeldRuntime>& runtime) {
  runtime
      .def(
          "load_policy",
          [](HeldRuntime& own, std::string_view text, std::string_view name) {
            Status status;
            {
              const ReleasedGil released;
              status = own.runtime->policy().load(text, name);
            }
            require_done(status);
          },
          nb::arg("text"), nb::arg("name") = "policy",
          "Puts the text of a policy file in force; a refused text changes nothing.")
      .def("check_policy", &check_policy, nb::arg("text"), nb::arg("name") = "policy",
           nb::kw_only(), nb::arg("strict_names") = false,
           nb::arg("machine") = std::vector<OperatorInfo>(),
           "Checks a policy text without loading it: returns warnings and changed decisions.")
      .def(
          "rollback",
          [](HeldRuntime& own) {
            Status status;
            {
              const ReleasedGil released;
              status = own.runtime->policy().rollback();
            }
            require_done(status);
          },
          "Restores the previous policy text.")
      .def("policy_state", [](const HeldRuntime& own) { return own.runtime->policy().state(); })
      .def(
          "add_validator",
          [](HeldRuntime& own, const nb::object& function) {
            own.runtime->policy().add_validator(validator_of(function));
          },
          nb::arg("function"),
          "Calls function(policy) before each load; a str or an exception refuses the policy.")
      .def(
          "on_policy",
          [](HeldRuntime& own, const nb::object& function) {
            own.runtime->policy().on_change(listener_of<PolicyChange>(function));
          },
          nb::arg("function"),
          "Calls function(change) for each policy text that is loaded or refused.")
      .def(
          "tick",
          [](HeldRuntime& own, double now) {
            const ReleasedGil released;
            own.runtime->tick(std::chrono::nanoseconds(static_cast<int64_t>(now * 1e9)));
          },
          nb::arg("now"), "Runs the maintenance due at `now`, in seconds, on the calling thread.");
}

}  // namespace opmux::python
