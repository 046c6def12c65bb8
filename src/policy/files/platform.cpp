#include "policy/files/platform.hpp"

#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

struct Sign {
  std::string_view platform;
  std::string_view device;  ///< exists if the driver of the platform has found its devices
};

/// Drivers that build on another one come before it: that of hygon also makes kfd.
constexpr std::array kSigns{
    Sign{"ascend", "davinci_manager"},
    Sign{"maca", "mxcd"},
    Sign{"musa", "mtgpu.0"},
    Sign{"enflame", "gcuctl"},
    Sign{"iluvatar", "iluvatar0"},
    Sign{"kunlunxin", "xpuctrl"},
    Sign{"hygon", "mkfd"},
    Sign{"rocm", "kfd"},
    Sign{"cuda", "nvidiactl"},
};

}  // namespace

Result<std::string> find_platform(const std::string& named, const std::string& installed) {
  std::error_code error;
  if (named.find('/') != std::string::npos || fs::exists(named, error)) return named;
  std::vector<std::string> files, names;
  base::read_names(installed, files);
  for (const fs::path file : files) {
    if (file.extension() != ".yaml") continue;
    names.push_back(file.stem());
    if (names.back() == named) return (fs::path(installed) / file).native();
  }
  return Status(
      Code::not_found, "config.platform",
      base::concat("there is no platform '", named, "' in ", installed,
                   "; to name a file, write its path with a '/'", base::suggestion(named, names)));
}

PresentPlatforms present_platforms(const std::string& device_folder) {
  PresentPlatforms present;
  for (const Sign& sign : kSigns) {
    const fs::path device = fs::path(device_folder) / sign.device;
    std::error_code error;
    if (!fs::exists(device, error)) continue;
    if (present.names.empty()) present.sign = device.native();
    present.names.emplace_back(sign.platform);
  }
  if (present.names.empty()) present.names.emplace_back("cpu");
  return present;
}

Result<PlatformChoice> choose_platform(const Mode& mode, const std::string& installed) {
  PlatformChoice choice;
  choice.asked_for = !mode.platform_origin.empty();
  if (choice.asked_for) {
    choice.shown = {"platform", mode.platform, mode.platform_origin};
    if (mode.platform == kNoPlatform) return choice;
    Result<std::string> path = find_platform(mode.platform, installed);
    if (!path) return path.error();
    choice.path = *std::move(path);
    return choice;
  }
  std::error_code error;
  if (!fs::exists(installed, error)) return choice;
  const PresentPlatforms present = present_platforms(mode.device_folder);
  const std::string& name = present.names.front();
  std::string why = present.sign.empty() ? "built-in, auto: no accelerator in " + mode.device_folder
                                         : "built-in, auto: " + present.sign;
  const std::string path = base::concat(installed, "/", name, ".yaml");
  if (!fs::exists(path, error)) {
    why += base::concat("; no platform file ", name, ".yaml is installed");
    choice.shown = {"platform", std::string(kNoPlatform), std::move(why)};
    return choice;
  }
  choice.path = path;
  if (present.names.size() > 1) {
    choice.warning =
        base::concat("the machine has devices of the platforms ", base::join(present.names, ", "),
                     "; ", name, " is used; OPMUX_PLATFORM can name another one");
    why += "; also present: " + base::join(std::span(present.names).subspan(1), ", ");
  }
  choice.shown = {"platform", name, std::move(why)};
  return choice;
}

}  // namespace opmux::policy
