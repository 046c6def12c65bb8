#include "base/system/cpu_features.hpp"

#include <fstream>
#include <sstream>

#include "base/locks.hpp"

namespace opmux::base {

CpuFeatures parse_cpu_features(std::string_view cpuinfo) {
  CpuFeatures features;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) features.insert(word);
    break;
  }
  return features;
}

const CpuFeatures& cpu_features() {
  static constinit Lazy<CpuFeatures> features;
  return features.get([] {
    std::ifstream file("/proc/cpuinfo");
    std::ostringstream text;
    text << file.rdbuf();
    return std::make_unique<CpuFeatures>(parse_cpu_features(text.str()));
  });
}

std::string missing_features(std::string_view needed, const CpuFeatures& have) {
  std::string missing;
  std::istringstream words{std::string(needed)};
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty() || have.contains(word)) continue;
    missing += (missing.empty() ? "" : ",") + word;
  }
  return missing;
}

}  // namespace opmux::base
