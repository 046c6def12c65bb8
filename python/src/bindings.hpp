#pragma once

#include <nanobind/nanobind.h>

/// The parts of the module, one file each.
namespace opmux::python {

struct HeldRuntime;

void bind_information(nanobind::module_& module);
void bind_policy(nanobind::module_& module);
void bind_plugin_options(nanobind::module_& module);
void bind_policy_sources(nanobind::module_& module);
void bind_state_options(nanobind::module_& module);
/// What processes tell of themselves.
void bind_state_pages(nanobind::module_& module);
void bind_runtime(nanobind::module_& module);
void bind_locks(nanobind::module_& module);
/// Lockfiles, freezing, and the program's own selector.
void bind_freezing(nanobind::class_<HeldRuntime>& runtime);
/// What a runtime does with texts of policy files.
void bind_policy_texts(nanobind::class_<HeldRuntime>& runtime);
/// The crash journal and who it blames.
void bind_quarantine(nanobind::class_<HeldRuntime>& runtime);
void bind_recording(nanobind::module_& module);
/// Recorded calls, and making them again.
void bind_replay(nanobind::class_<HeldRuntime>& runtime);
void bind_health(nanobind::module_& module);
/// What a runtime does with breakers.
void bind_breakers_of(nanobind::class_<HeldRuntime>& runtime);
void bind_implementations(nanobind::module_& module);
void bind_points(nanobind::module_& module);
void bind_readers(nanobind::module_& module);
void bind_dispatchable(nanobind::module_& module);
void bind_benchmark(nanobind::module_& module);

}  // namespace opmux::python
