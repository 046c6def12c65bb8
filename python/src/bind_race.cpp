#include <memory>
#include <random>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/system/clock.hpp"
#include "bindings.hpp"
#include "tune/race/race.hpp"
#include "tune/race/system_noise.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

using tune::race::Candidate;
using tune::race::Standing;

/// A race of Python functions, with the lines of a measured point that `opmux tune run` reads.
struct PythonRace {
  tune::race::Result result;
};

PythonRace race(const nb::list& functions, uint32_t threads, double most_seconds) {
  std::vector<Candidate> candidates;
  for (const nb::handle function : functions) {
    candidates.push_back({[kept = nb::borrow<nb::object>(function)](uint64_t calls) {
      kept(calls);
      return true;
    }});
  }
  const base::SteadyClock clock;
  tune::race::SystemNoise noise(clock, threads);
  const tune::race::Environment environment{
      clock, noise, [order = std::make_shared<std::mt19937_64>(1)] { return (*order)(); }};
  tune::race::Options options;
  options.most_time_ns = static_cast<uint64_t>(most_seconds * 1e9);
  return {tune::race::race(candidates, options, environment)};
}

}  // namespace

void bind_race(nb::module_& module) {
  nb::class_<Standing>(module, "RaceStanding", "The result of one function of a race.")
      .def_prop_ro("verdict",
                   [](const Standing& own) { return std::string(verdict_name(own.verdict)); })
      .def_ro("log_ratio", &Standing::log_ratio, "log(its time / time of the first function).")
      .def_ro("low", &Standing::low, "Lower bound of log_ratio.")
      .def_ro("high", &Standing::high, "Upper bound of log_ratio.")
      .def_ro("rounds", &Standing::rounds, "Rounds in which it was compared with the first one.");
  nb::class_<PythonRace>(module, "RaceResult", "The result of race().")
      .def_prop_ro("standings", [](const PythonRace& own) { return own.result.standings; })
      .def_prop_ro("winner", [](const PythonRace& own) { return own.result.winner; })
      .def_prop_ro("ended_by_time",
                   [](const PythonRace& own) { return own.result.end == tune::race::End::time; })
      .def_prop_ro("dropped", [](const PythonRace& own) { return own.result.dropped(); })
      .def_prop_ro("noise", [](const PythonRace& own) {
        return std::string(noise_name(own.result.most_noise()));
      });
  module.def("race", &race, nb::arg("functions"), nb::arg("threads"), nb::arg("most_seconds"),
             "Finds the fastest of 2 to 16 functions, each called with the number of its calls. "
             "Raises what one of them raises.");
}

}  // namespace opmux::python
