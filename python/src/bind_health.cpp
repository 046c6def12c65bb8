#include <array>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <opmux/runtime.hpp>

#include "bindings.hpp"
#include "kept_function.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

BreakerForce force_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, BreakerForce>, 3> kWords{
      {{"open", BreakerForce::open},
       {"close", BreakerForce::close},
       {"isolate", BreakerForce::isolate}}};
  for (const auto& [name, what] : kWords) {
    if (name == word) return what;
  }
  throw nb::value_error("a breaker can be forced to 'open', 'close' or 'isolate'");
}

void force_breaker(HeldRuntime& own, std::string_view implementation, std::string_view what) {
  const BreakerForce force = force_of(what);
  Status status;
  {
    const ReleasedGil released;
    status = own.runtime->health().force_breaker(implementation, force);
  }
  if (!status.ok()) throw Error(status);
}

HealthReport health(const HeldRuntime& own) {
  const ReleasedGil released;
  return own.runtime->health().report();
}

void bind_breakers(nb::module_& module) {
  nb::class_<BreakerInfo>(
      module, "BreakerInfo",
      "The breaker of an implementation for one class of calls that failed recently.")
      .def_ro("implementation", &BreakerInfo::implementation)
      .def_ro("op", &BreakerInfo::op)
      .def_ro("what", &BreakerInfo::what)
      .def_prop_ro("state", [](const BreakerInfo& own) { return name_of(own.state); })
      .def_ro("failures_in_a_row", &BreakerInfo::failures_in_a_row)
      .def_ro("openings", &BreakerInfo::openings)
      .def_ro("change", &BreakerInfo::change)
      .def_ro("next_probe_ms", &BreakerInfo::next_probe_ms)
      .def_ro("why", &BreakerInfo::why)
      .def("__repr__", [](const BreakerInfo& own) {
        return "<BreakerInfo " + own.implementation + " " + std::string(name_of(own.state)) + ">";
      });
  nb::class_<BreakerEvent>(module, "BreakerEvent", "A state change of a breaker.")
      .def_ro("implementation", &BreakerEvent::implementation)
      .def_ro("op", &BreakerEvent::op)
      .def_ro("what", &BreakerEvent::what)
      .def_prop_ro("before", [](const BreakerEvent& own) { return name_of(own.from); })
      .def_prop_ro("after", [](const BreakerEvent& own) { return name_of(own.to); })
      .def_ro("openings", &BreakerEvent::openings)
      .def_ro("change", &BreakerEvent::change)
      .def_ro("open_for_ms", &BreakerEvent::open_for_ms)
      .def_ro("why", &BreakerEvent::why)
      .def("__repr__", [](const BreakerEvent& own) {
        return "<BreakerEvent " + own.implementation + " " + std::string(name_of(own.to)) + ">";
      });
}

void bind_shadow(nb::module_& module) {
  nb::class_<ShadowMismatch>(module, "ShadowMismatch",
                             "An element that differs from the reference's result.")
      .def_ro("what", &ShadowMismatch::what)
      .def_ro("element", &ShadowMismatch::element)
      .def_ro("got", &ShadowMismatch::got)
      .def_ro("expected", &ShadowMismatch::expected)
      .def_ro("tolerance", &ShadowMismatch::tolerance)
      .def_ro("text", &ShadowMismatch::text)
      .def("__repr__",
           [](const ShadowMismatch& own) { return "<ShadowMismatch " + own.element + ">"; });
  nb::class_<ShadowInfo>(module, "ShadowInfo",
                         "The results of the shadow check for an implementation.")
      .def_ro("implementation", &ShadowInfo::implementation)
      .def_ro("compared", &ShadowInfo::compared)
      .def_ro("mismatches", &ShadowInfo::mismatches)
      .def_ro("not_finite", &ShadowInfo::not_finite)
      .def_prop_ro("skipped",
                   [](const ShadowInfo& own) {
                     nb::dict all;
                     for (const ShadowInfo::Skipped& skipped : own.skipped)
                       all[skipped.reason.c_str()] = skipped.calls;
                     return all;
                   })
      .def_ro("last", &ShadowInfo::last)
      .def("__repr__",
           [](const ShadowInfo& own) { return "<ShadowInfo " + own.implementation + ">"; });
  nb::class_<ShadowReport>(module, "ShadowReport",
                           "The settings and results of a runtime's shadow check.")
      .def_ro("every", &ShadowReport::every)
      .def_ro("waiting", &ShadowReport::waiting)
      .def_ro("implementations", &ShadowReport::implementations);
}

}  // namespace

void bind_health(nb::module_& module) {
  bind_breakers(module);
  bind_shadow(module);
  nb::class_<BackendHealth>(module, "BackendHealth", "The health of a backend, with the reason.")
      .def_ro("name", &BackendHealth::name)
      .def_prop_ro("health", [](const BackendHealth& own) { return name_of(own.health); })
      .def_ro("reason", &BackendHealth::reason);
  nb::class_<DeviceState>(module, "DeviceState", "The health of a device, with the reason.")
      .def_prop_ro("device", [](const DeviceState& own) { return name_of(own.device); })
      .def_prop_ro("health", [](const DeviceState& own) { return name_of(own.health); })
      .def_ro("reason", &DeviceState::reason);
  nb::class_<OperatorWithoutCandidates>(
      module, "OperatorWithoutCandidates",
      "An operator whose calls fail, because nothing that can run is left.")
      .def_ro("op", &OperatorWithoutCandidates::op)
      .def_ro("when", &OperatorWithoutCandidates::when)
      .def_ro("reason", &OperatorWithoutCandidates::reason)
      .def_ro("allowed", &OperatorWithoutCandidates::allowed);
  nb::class_<HealthReport>(module, "HealthReport",
                           "The health of a runtime, for a server's health endpoint.")
      .def_prop_ro("verdict", [](const HealthReport& own) { return name_of(own.verdict); })
      .def_ro("reasons", &HealthReport::reasons)
      .def_ro("backends", &HealthReport::backends)
      .def_ro("devices", &HealthReport::devices)
      .def_ro("breakers", &HealthReport::breakers)
      .def_ro("shadow", &HealthReport::shadow)
      .def_ro("without_candidates", &HealthReport::without_candidates)
      .def_ro("refused_policies", &HealthReport::refused_policies)
      .def_prop_ro("last_refusal",
                   [](const HealthReport& own) { return own.last_refusal.message(); })
      .def("to_json", [](const HealthReport& own) { return to_json(own); })
      .def("__repr__", [](const HealthReport& own) {
        return "<HealthReport " + std::string(name_of(own.verdict)) + ">";
      });
}

void bind_breakers_of(nb::class_<HeldRuntime>& runtime) {
  runtime.def("health", &health, "Returns the health verdict and its details.")
      .def("force_breaker", &force_breaker, nb::arg("implementation"), nb::arg("what"),
           "Opens, closes or isolates the breaker of an implementation by hand.")
      .def(
          "on_breaker",
          [](HeldRuntime& own, const nb::object& function) {
            own.runtime->health().on_breaker(listener_of<BreakerEvent>(function));
          },
          nb::arg("function"), "Calls function(event) for each breaker state change.");
}

}  // namespace opmux::python
