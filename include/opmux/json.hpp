#pragma once

#include <string>
#include <vector>

#include <opmux/explanation.hpp>
#include <opmux/runtime.hpp>

/// What a runtime tells about itself, as JSON on one line. docs/schemas describes each form; keys
/// are only ever added.
namespace opmux {

OPMUX_API std::string to_json(const Explanation& explanation);
OPMUX_API std::string to_json(const std::vector<OperatorInfo>& operators);
OPMUX_API std::string to_json(const std::vector<PluginInfo>& plugins);
OPMUX_API std::string to_json(const std::vector<SettingInfo>& settings);
OPMUX_API std::string to_json(const Quarantine& quarantine);
OPMUX_API std::string to_json(const CrashJournalState& state);
OPMUX_API std::string to_json(const PolicyState& state);
/// What Runtime::check_policy found, or why it failed.
OPMUX_API std::string to_json(const PolicyCheck& check);
OPMUX_API std::string to_json(const Status& refusal);
OPMUX_API std::string to_json(const HealthReport& report);
OPMUX_API std::string to_json(const RecordState& state);
OPMUX_API std::string to_json(const ReplayReport& report);

}  // namespace opmux
