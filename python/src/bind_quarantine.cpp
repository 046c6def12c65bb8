#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/runtime.hpp>

#include "bindings.hpp"
#include "runtime_object.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

CrashJournal crash_journal_of(const std::string& word) {
  for (const CrashJournal one : {CrashJournal::off, CrashJournal::on, CrashJournal::with_handler}) {
    if (name_of(one) == word) return one;
  }
  throw nb::value_error("crash_journal must be 'off', 'on' or 'with_handler'");
}

}  // namespace

void bind_state_options(nb::module_& module) {
  nb::class_<StateOptions>(module, "StateOptions",
                           "The state files that a runtime writes, and their folder.")
      .def(
          "__init__",
          [](StateOptions* own, std::string folder, const std::string& journal, bool page) {
            new (own) StateOptions{std::move(folder), crash_journal_of(journal), page};
          },
          nb::kw_only(), nb::arg("folder") = "", nb::arg("crash_journal") = "off",
          nb::arg("state_page") = false)
      .def_rw("folder", &StateOptions::folder)
      .def_rw("state_page", &StateOptions::state_page)
      .def_prop_rw(
          "crash_journal",
          [](const StateOptions& own) { return std::string(name_of(own.crash_journal)); },
          [](StateOptions& own, const std::string& word) {
            own.crash_journal = crash_journal_of(word);
          });
  nb::class_<QuarantineEntry>(module, "QuarantineEntry",
                              "A quarantined implementation: a process crashed inside it.")
      .def_ro("implementation", &QuarantineEntry::implementation)
      .def_ro("build", &QuarantineEntry::build)
      .def_ro("how", &QuarantineEntry::how)
      .def_ro("since", &QuarantineEntry::since)
      .def_ro("expires", &QuarantineEntry::expires)
      .def_ro("here", &QuarantineEntry::here)
      .def_ro("phase", &QuarantineEntry::phase)
      .def_ro("deferred", &QuarantineEntry::deferred);
  nb::class_<SuspectedEnd>(module, "SuspectedEnd",
                           "A process that was killed, with the implementations that were running.")
      .def_ro("found", &SuspectedEnd::found)
      .def_ro("process", &SuspectedEnd::process)
      .def_ro("implementations", &SuspectedEnd::implementations);
  nb::class_<Quarantine>(
      module, "Quarantine",
      "The quarantined implementations, and the processes that were killed inside one.")
      .def_ro("entries", &Quarantine::entries)
      .def_ro("suspected", &Quarantine::suspected)
      .def("to_json", [](const Quarantine& own) { return to_json(own); });
  nb::class_<CrashJournalState>(module, "CrashJournalState",
                                "The state of a runtime's crash journal.")
      .def_ro("on", &CrashJournalState::on)
      .def_ro("handler", &CrashJournalState::handler)
      .def_ro("path", &CrashJournalState::path)
      .def_ro("problem", &CrashJournalState::problem)
      .def_ro("ends", &CrashJournalState::ends)
      .def_ro("damaged", &CrashJournalState::damaged)
      .def_ro("other_version", &CrashJournalState::other_version)
      .def_ro("unnoted", &CrashJournalState::unnoted)
      .def_ro("threads_left_out", &CrashJournalState::threads_left_out);
}

void bind_quarantine(nb::class_<HeldRuntime>& runtime) {
  runtime
      .def("quarantine", [](const HeldRuntime& own) { return own.runtime->health().quarantine(); })
      .def(
          "clear_quarantine",
          [](HeldRuntime& own, const std::string& implementation) {
            return own.runtime->health().clear_quarantine(implementation).value();
          },
          nb::arg("implementation") = "",
          "Clears the quarantine of one implementation or of all; returns the entries removed.")
      .def("crash_journal",
           [](const HeldRuntime& own) { return own.runtime->health().crash_journal(); });
}

}  // namespace opmux::python
