#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "policy/files/mode.hpp"
#include "policy/rules/origin_report.hpp"

namespace opmux::policy {

/// The name that turns platform files off.
inline constexpr std::string_view kNoPlatform = "none";

/// The path of a platform file: `named` itself if it is a path, else an installed platform of that
/// name.
Result<std::string> find_platform(const std::string& named, const std::string& installed);

/// The platforms whose devices a machine has, the one to use first; "cpu" if it has none of them.
struct PresentPlatforms {
  std::vector<std::string> names;
  std::string sign;  ///< the device by which the first one was recognized; empty for "cpu"
};

/// Looks for devices in a folder such as /dev. Opens none of them, so that no driver is started.
PresentPlatforms present_platforms(const std::string& device_folder);

/// The platform file of a runtime.
struct PlatformChoice {
  std::string path;        ///< empty: none
  Setting shown;           ///< the line of `opmux config show`; empty if no platforms are installed
  std::string warning;     ///< empty, or that the machine has devices of several platforms
  bool asked_for = false;  ///< options or environment name it
};

/// Chooses the platform that the mode names, or an installed one by the devices of the machine.
/// Fails with "config.platform" if there is no platform of that name.
Result<PlatformChoice> choose_platform(const Mode& mode, const std::string& installed);

}  // namespace opmux::policy
