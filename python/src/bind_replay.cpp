#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/replay.hpp>
#include <opmux/runtime.hpp>

#include "bindings.hpp"
#include "gil.hpp"
#include "runtime_object.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void bind_reports(nb::module_& module) {
  nb::class_<ReplayDifference>(module, "ReplayDifference",
                               "The first element that differs from the reference.")
      .def_ro("argument", &ReplayDifference::argument)
      .def_ro("index", &ReplayDifference::index)
      .def_ro("got", &ReplayDifference::got)
      .def_ro("expected", &ReplayDifference::expected)
      .def_ro("allowed", &ReplayDifference::allowed);
  nb::class_<ReplayedImplementation>(module, "ReplayedImplementation",
                                     "The result of one implementation on a recorded call.")
      .def_ro("id", &ReplayedImplementation::id)
      .def_prop_ro(
          "verdict",
          [](const ReplayedImplementation& own) { return std::string(name_of(own.verdict)); })
      .def_ro("text", &ReplayedImplementation::text)
      .def_ro("difference", &ReplayedImplementation::difference);
  nb::class_<ReplayReport>(module, "ReplayReport", "The result of replaying a recorded call.")
      .def_ro("op", &ReplayReport::op)
      .def_ro("recorded", &ReplayReport::recorded)
      .def_ro("cause", &ReplayReport::cause)
      .def_ro("reason", &ReplayReport::reason)
      .def_ro("says", &ReplayReport::says)
      .def_ro("reference", &ReplayReport::reference)
      .def_ro("arguments", &ReplayReport::arguments)
      .def_ro("notes", &ReplayReport::notes)
      .def_ro("other_values", &ReplayReport::other_values)
      .def_ro("implementations", &ReplayReport::implementations)
      .def_prop_ro(
          "smaller",
          [](const ReplayReport& own) { return nb::bytes(own.smaller.data(), own.smaller.size()); })
      .def_ro("smaller_arguments", &ReplayReport::smaller_arguments)
      .def_ro("tried", &ReplayReport::tried)
      .def_prop_ro("verdict",
                   [](const ReplayReport& own) { return std::string(name_of(own.verdict())); })
      .def("to_json", [](const ReplayReport& own) { return to_json(own); })
      .def("__str__", &ReplayReport::to_string);
}

}  // namespace

void bind_recording(nb::module_& module) {
  nb::class_<RecordOptions>(module, "RecordOptions",
                            "Where failed and diverging calls are recorded, and how much of each.")
      .def(
          "__init__",
          [](RecordOptions* own, std::string folder, bool inputs, uint32_t max_files,
             uint64_t max_bytes, std::string dump) {
            new (own)
                RecordOptions{std::move(folder), inputs, max_files, max_bytes, std::move(dump)};
          },
          nb::kw_only(), nb::arg("folder") = "", nb::arg("inputs") = false,
          nb::arg("max_files") = RecordOptions().max_files,
          nb::arg("max_bytes") = RecordOptions().max_bytes, nb::arg("dump") = "")
      .def_rw("folder", &RecordOptions::folder)
      .def_rw("inputs", &RecordOptions::inputs)
      .def_rw("max_files", &RecordOptions::max_files)
      .def_rw("max_bytes", &RecordOptions::max_bytes)
      .def_rw("dump", &RecordOptions::dump);
  nb::class_<RecordState>(module, "RecordState", "The folder and counters of recorded calls.")
      .def_ro("folder", &RecordState::folder)
      .def_ro("inputs", &RecordState::inputs)
      .def_ro("written", &RecordState::written)
      .def_ro("known", &RecordState::known)
      .def_ro("left_out", &RecordState::left_out)
      .def_ro("failed", &RecordState::failed)
      .def_ro("problem", &RecordState::problem);
  bind_reports(module);
}

void bind_replay(nb::class_<HeldRuntime>& runtime) {
  runtime
      .def("recordings", [](const HeldRuntime& own) { return own.runtime->replay().recordings(); })
      .def(
          "replay",
          [](HeldRuntime& own, const std::string& path, std::vector<std::string> implementations,
             bool minimize) {
            // Released because implementations may be Python functions that run on another thread.
            const ReleasedGil released;
            return own.runtime->replay().run(path, {std::move(implementations), minimize}).value();
          },
          nb::arg("path"), nb::arg("implementations") = std::vector<std::string>(),
          nb::arg("minimize") = false,
          "Repeats a recorded call and compares the outputs with the reference.");
}

}  // namespace opmux::python
