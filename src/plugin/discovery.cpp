#include "plugin/discovery.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"

namespace opmux::plugin {

namespace fs = std::filesystem;

namespace {

fs::path own_program() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed);
}

}  // namespace

std::string own_library() {
  std::error_code failed;
  Dl_info self{};
  const bool known =
      dladdr(reinterpret_cast<void*>(&own_library), &self) != 0 && self.dli_fname != nullptr;
  const fs::path here = known ? fs::canonical(self.dli_fname, failed) : fs::path();
  return here.empty() ? own_program().string() : here.string();
}

std::string installation_folder() {
  const fs::path program = own_program(), library = own_library();
  if (library != program) return library.parent_path().string();
  if (program.empty()) return {};
  return (program.parent_path().parent_path() / "lib").string();
}

std::string default_folder() {
  const std::string here = installation_folder();
  return here.empty() ? here : here + "/opmux/backends";
}

Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> paths;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with('.') && name.ends_with(suffix)) paths.push_back(at->path().string());
  }
  if (failed) {
    const bool missing = failed == std::errc::no_such_file_or_directory;
    return Status(missing ? Code::not_found : Code::failed, "plugin.folder",
                  base::concat("cannot read ", folder, ": ", failed.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace opmux::plugin
