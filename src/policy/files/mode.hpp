#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/options.hpp>
#include <opmux/status.hpp>

#include "policy/rules/environment.hpp"

namespace opmux::policy {

/// How a runtime gets its policy: the result of options and environment.
struct Mode {
  enum class Kind : uint8_t { dynamic, config, hot_reload, locked };
  Kind kind = Kind::dynamic;
  std::string config, platform, lockfile, state_dir;  ///< paths; empty if not set
  std::string platform_origin;  ///< source of `platform`; empty: devices choose it
  std::string device_folder;    ///< where these devices are looked for
  /// Source of the mode, such as "OPMUX_MODE (environment)".
  std::string origin;
  /// Source of the lockfile's path; empty if it was found beside the policy file.
  std::string lockfile_origin;
  /// The mode is static only because a lockfile was found beside the policy file.
  bool by_found_lockfile = false;
};
/// "dynamic", "config", "hot_reload", "static".
std::string_view name_of(Mode::Kind kind);

/// Fails with "mode.value" for an unknown mode, and with "mode.files" if the mode does not match
/// the configured files.
Result<Mode> mode_of(const SourceOptions& options, const Environment& environment);

}  // namespace opmux::policy
