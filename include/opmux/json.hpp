#pragma once

#include <string>
#include <vector>

#include <opmux/explanation.hpp>
#include <opmux/runtime.hpp>

/// Reports of a runtime as JSON, one line each, for endpoints and tools.
///
///   std::cout << opmux::to_json(runtime.health()) << "\n";
///   std::cout << opmux::to_json(runtime.list()) << "\n";
///
/// docs/schemas has a JSON Schema for each form. Keys are only ever added, so readers should ignore
/// unknown ones. Functions do not fail and keep no reference to their argument; text that is not
/// valid UTF-8 is written as U+FFFD.
namespace opmux {

/// explain.json: a decision with all candidates.
OPMUX_API std::string to_json(const Explanation& explanation);
/// list.json: operators and implementations.
OPMUX_API std::string to_json(const std::vector<OperatorInfo>& operators);
/// plugins.json: plugins found, loaded and refused.
OPMUX_API std::string to_json(const std::vector<PluginInfo>& plugins);
/// config.json: effective settings with their origins.
OPMUX_API std::string to_json(const std::vector<SettingInfo>& settings);
/// quarantine.json: quarantined implementations and suspects.
OPMUX_API std::string to_json(const Quarantine& quarantine);
/// State and counters of the crash journal.
OPMUX_API std::string to_json(const CrashJournalState& state);
/// The policy text in force and counters of loads and refusals.
OPMUX_API std::string to_json(const PolicyState& state);
/// check.json: the result of Runtime::check_policy(), or the Status with which it failed.
OPMUX_API std::string to_json(const PolicyCheck& check);
OPMUX_API std::string to_json(const Status& refusal);
/// health.json: verdict, backends, devices, breakers, shadow check.
OPMUX_API std::string to_json(const HealthReport& report);
/// Counters of recorded calls.
OPMUX_API std::string to_json(const RecordState& state);
/// replay.json: verdicts on a replayed call.
OPMUX_API std::string to_json(const ReplayReport& report);

}  // namespace opmux
