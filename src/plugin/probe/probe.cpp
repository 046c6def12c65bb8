#include "plugin/probe/probe.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/probe/child.hpp"

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

namespace {

namespace fs = std::filesystem;

/// A private temporary folder that is removed with its contents.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code failed;
    const fs::path parent = fs::temp_directory_path(failed);
    std::string name = (failed ? fs::path("/tmp") : parent) / "opmux-probe-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

ProbeResult unusable(std::string_view code, std::string text) {
  return {std::string(code), std::move(text), {}, 0, 0, {}};
}

}  // namespace

std::string probe_program() {
  const std::string here = base::installation_folder();
  if (here.empty()) return {};
  // Libraries may be one folder deeper, in a folder named after the architecture.
  for (const char* up : {"..", "../.."}) {
    std::error_code unknown;
    const fs::path program = (fs::path(here) / up / "libexec/opmux/opmux-probe").lexically_normal();
    if (fs::is_regular_file(program, unknown)) return program.string();
  }
  return (fs::path(here) / "../libexec/opmux/opmux-probe").lexically_normal().string();
}

ProbeResult probe(const std::string& program, const LibraryFile& file) {
  if (access(program.c_str(), X_OK) != 0) {
    return unusable("probe.missing", base::concat("the plugin probe ", program,
                                                  " does not exist or is not executable"));
  }
  const PrivateFolder folder;
  if (folder.path().empty()) {
    return unusable("probe.spawn", "cannot create a temporary folder");
  }
  std::vector<std::string> arguments{file.path};
  arguments.insert(arguments.end(), file.beside.begin(), file.beside.end());
  const ChildCommand command{program, std::move(arguments),
                             probe_environment(environ, folder.path()), file.descriptor,
                             protocol::kMostData};
  const Result<ChildReport> report =
      run_child(command, std::chrono::seconds(protocol::kMostSeconds));
  if (!report) return unusable(report.error().reason(), std::string(report.error().message()));
  return judge(report->text, report->ending);
}

}  // namespace opmux::plugin
