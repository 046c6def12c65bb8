#pragma once

#include <nanobind/nanobind.h>

/// Each function binds one part of the extension module and lives in the file of its name.
namespace opmux::python {

struct HeldRuntime;

void bind_information(nanobind::module_& module);
void bind_policy(nanobind::module_& module);
void bind_plugin_options(nanobind::module_& module);
void bind_policy_sources(nanobind::module_& module);
void bind_state_options(nanobind::module_& module);
/// The status files of processes.
void bind_state_pages(nanobind::module_& module);
void bind_runtime(nanobind::module_& module);
/// Operators with fixed arguments and state.
void bind_instances(nanobind::module_& module);
void bind_locks(nanobind::module_& module);
/// Locking, freezing and the selector of a runtime.
void bind_freezing(nanobind::class_<HeldRuntime>& runtime);
/// Loading, checking and observing policy texts.
void bind_policy_texts(nanobind::class_<HeldRuntime>& runtime);
/// The crash journal and the quarantine.
void bind_quarantine(nanobind::class_<HeldRuntime>& runtime);
void bind_recording(nanobind::module_& module);
/// Recordings and their replay.
void bind_replay(nanobind::class_<HeldRuntime>& runtime);
void bind_health(nanobind::module_& module);
/// The health report and the breakers of a runtime.
void bind_breakers_of(nanobind::class_<HeldRuntime>& runtime);
void bind_implementations(nanobind::module_& module);
void bind_points(nanobind::module_& module);
void bind_readers(nanobind::module_& module);
void bind_dispatchable(nanobind::module_& module);
void bind_benchmark(nanobind::module_& module);
/// Races of Python functions, for `python -m opmux.tune_worker`.
void bind_race(nanobind::module_& module);

}  // namespace opmux::python
