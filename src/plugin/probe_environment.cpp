#include "plugin/probe_environment.hpp"

#include <string_view>

namespace opmux::plugin {
namespace {

bool passes(std::string_view name) {
  if (name == "LD_LIBRARY_PATH" || name.ends_with("_VISIBLE_DEVICES")) return true;
  return name.starts_with("OCL_ICD_") || name.starts_with("POCL_") || name.starts_with("OMP_");
}

}  // namespace

std::vector<std::string> probe_environment(const char* const* block, const std::string& folder) {
  std::vector<std::string> kept{"HOME=" + folder, "TMPDIR=" + folder, "LANG=C"};
  for (; block != nullptr && *block != nullptr; ++block) {
    const std::string_view entry = *block;
    if (passes(entry.substr(0, entry.find('=')))) kept.emplace_back(entry);
  }
  return kept;
}

}  // namespace opmux::plugin
