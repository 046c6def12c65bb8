#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/state_page.hpp>

#include "bindings.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void bind_page_parts(nb::module_& module) {
  nb::class_<PolicySourceState>(module, "PolicySourceState", "A policy source that is in force.")
      .def_ro("source", &PolicySourceState::source)
      .def_ro("name", &PolicySourceState::name)
      .def_ro("rules", &PolicySourceState::rules);
  nb::class_<BackendPageState>(module, "BackendPageState",
                               "A backend of a process and its last known state.")
      .def_ro("name", &BackendPageState::name)
      .def_ro("state", &BackendPageState::state)
      .def_ro("reason", &BackendPageState::reason);
  nb::class_<ImplementationPageState>(
      module, "ImplementationPageState",
      "An implementation of a process: its counters, or why it cannot run.")
      .def_ro("id", &ImplementationPageState::id)
      .def_ro("kind", &ImplementationPageState::kind)
      .def_ro("priority", &ImplementationPageState::priority)
      .def_ro("calls", &ImplementationPageState::calls)
      .def_ro("stood_in", &ImplementationPageState::stood_in)
      .def_ro("decided_each_time", &ImplementationPageState::decided_each_time)
      .def_ro("declined", &ImplementationPageState::declined)
      .def_ro("failed", &ImplementationPageState::failed)
      .def_ro("resource", &ImplementationPageState::resource)
      .def_ro("code", &ImplementationPageState::code)
      .def_ro("reason", &ImplementationPageState::reason)
      .def_ro("instance", &ImplementationPageState::instance);
  nb::class_<OperatorPageState>(module, "OperatorPageState",
                                "An operator of a process with its implementations.")
      .def_ro("name", &OperatorPageState::name)
      .def_ro("implementations", &OperatorPageState::implementations)
      .def_prop_ro("calls", &OperatorPageState::calls);
  nb::class_<ChoicePageState>(module, "ChoicePageState",
                              "The implementations chosen for one class of calls of a process.")
      .def_ro("op", &ChoicePageState::op)
      .def_ro("when", &ChoicePageState::when)
      .def_ro("accepted", &ChoicePageState::accepted)
      .def_ro("rests", &ChoicePageState::rests)
      .def_ro("note", &ChoicePageState::note)
      .def_ro("generation", &ChoicePageState::generation);
  nb::class_<CellPageState>(module, "CellPageState",
                            "Calls of a process with the same types, sizes and threads, estimated "
                            "from sampled calls.")
      .def_ro("op", &CellPageState::op)
      .def_ro("tensors", &CellPageState::tensors)
      .def_ro("dims", &CellPageState::dims)
      .def_ro("threads", &CellPageState::threads)
      .def_ro("calls", &CellPageState::calls)
      .def_ro("time_ns", &CellPageState::time_ns)
      .def_ro("error_ns", &CellPageState::error_ns);
  nb::class_<BreakerPageState>(module, "BreakerPageState",
                               "A breaker of a process that is not closed, for one class of calls.")
      .def_ro("implementation", &BreakerPageState::implementation)
      .def_ro("what", &BreakerPageState::what)
      .def_ro("state", &BreakerPageState::state)
      .def_ro("why", &BreakerPageState::why)
      .def_ro("openings", &BreakerPageState::openings);
}

void bind_process(nb::module_& module) {
  nb::class_<RuntimeState>(module, "RuntimeState", "One runtime of a process.")
      .def_ro("number", &RuntimeState::number)
      .def_ro("since", &RuntimeState::since)
      .def_ro("written", &RuntimeState::written)
      .def_ro("updates", &RuntimeState::updates)
      .def_ro("version", &RuntimeState::version)
      .def_ro("mode", &RuntimeState::mode)
      .def_ro("frozen", &RuntimeState::frozen)
      .def_ro("disabled", &RuntimeState::disabled)
      .def_ro("generation", &RuntimeState::generation)
      .def_ro("policy_name", &RuntimeState::policy_name)
      .def_ro("policy_digest", &RuntimeState::policy_digest)
      .def_ro("policy_origin", &RuntimeState::policy_origin)
      .def_ro("policy_version", &RuntimeState::policy_version)
      .def_ro("policy_rules", &RuntimeState::policy_rules)
      .def_ro("policies_refused", &RuntimeState::policies_refused)
      .def_ro("last_refusal", &RuntimeState::last_refusal)
      .def_ro("sources", &RuntimeState::sources)
      .def_ro("health", &RuntimeState::health)
      .def_ro("backends", &RuntimeState::backends)
      .def_ro("operators", &RuntimeState::operators)
      .def_ro("choices", &RuntimeState::choices)
      .def_ro("cells", &RuntimeState::cells)
      .def_ro("proposals", &RuntimeState::proposals)
      .def_ro("breakers", &RuntimeState::breakers)
      .def_ro("without_candidates", &RuntimeState::without_candidates)
      .def_ro("left_out", &RuntimeState::left_out)
      .def(
          "calls", [](const RuntimeState& own, const std::string& id) { return own.calls(id); },
          nb::arg("implementation"),
          "Returns the number of successful calls of an implementation.");
  nb::class_<ProcessState>(module, "ProcessState",
                           "The state of a running process, read from its status file.")
      .def_ro("pid", &ProcessState::pid)
      .def_ro("name", &ProcessState::name)
      .def_ro("started", &ProcessState::started)
      .def_ro("alive", &ProcessState::alive)
      .def_ro("elsewhere", &ProcessState::elsewhere)
      .def_ro("runtimes", &ProcessState::runtimes)
      .def("to_json", [](const ProcessState& own) { return to_json(own); });
}

}  // namespace

void bind_state_pages(nb::module_& module) {
  bind_page_parts(module);
  bind_process(module);
  module.def(
      "process_state",
      [](int64_t pid, const std::string& state_dir) {
        return process_state(pid, state_dir).value();
      },
      nb::arg("pid"), nb::arg("state_dir") = "",
      "Returns the state of a running process that publishes a status file.");
  module.def(
      "process_states", [](const std::string& state_dir) { return process_states(state_dir); },
      nb::arg("state_dir") = "",
      "Returns the state of every running process that publishes a status file.");
}

}  // namespace opmux::python
