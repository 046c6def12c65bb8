#include "plugin/libraries_beside.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/text.hpp"
#include "plugin/elf_rules.hpp"

namespace opmux::plugin {
namespace {

bool there(const std::string& folder, const std::string& name) {
  return access(base::concat(folder, "/", name).c_str(), R_OK) == 0;
}

bool in_library_path(const std::string& name) {
  const char* all = secure_getenv("LD_LIBRARY_PATH");
  std::string_view rest = all != nullptr ? all : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(":;"), rest.size());
    if (end != 0 && there(std::string(rest.substr(0, end)), name)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

/// The path of a needed library in an $ORIGIN folder of the file; empty if it is not there or an
/// earlier run-path entry has it.
std::string place_beside(const ElfFacts& facts, const std::string& path, const std::string& name) {
  for (const std::string& entry : facts.run_path) {
    const std::optional<std::string> beside = origin_folder(entry, path);
    const std::string& folder = beside ? *beside : entry;
    if (there(folder, name)) return beside ? base::concat(folder, "/", name) : std::string();
  }
  return {};
}

}  // namespace

std::vector<std::string> libraries_beside(const ElfFacts& facts, const std::string& path) {
  std::vector<std::string> all;
  for (const std::string& name : facts.needed) {
    if (name.find('/') != name.npos || in_library_path(name)) continue;
    std::string place = place_beside(facts, path, name);
    if (!place.empty()) all.push_back(std::move(place));
  }
  return all;
}

}  // namespace opmux::plugin
