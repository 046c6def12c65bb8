#include "plugin/discover/discovery.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::plugin {

namespace fs = std::filesystem;

std::string default_folder() {
  const std::string here = base::installation_folder();
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

Manifest manifest_of(const PluginContents& contents) {
  Manifest manifest;
  manifest.name = contents.name;
  manifest.version = contents.version;
  manifest.vendor = contents.vendor;
  manifest.build_id = contents.build_id;
  manifest.flags = contents.functions.flags;
  manifest.operators = contents.operators;
  for (const registry::Batch& batch : contents.batches) {
    for (const std::string& schema : batch.operators) {
      if (std::ranges::find(manifest.operators, schema) == manifest.operators.end()) {
        manifest.operators.push_back(schema);
      }
    }
    const registry::BackendDraft& from = batch.backend;
    Manifest::Backend backend{from.name,        from.vendor, static_cast<int32_t>(from.kind),
                              from.device_type, from.flags,  {}};
    for (const registry::ImplementationDraft& draft : batch.implementations) {
      backend.implementations.push_back({draft.op, draft.variant});
    }
    for (const registry::PointAnswerDraft& draft : batch.points) {
      manifest.points.push_back(draft.signature);
    }
    manifest.backends.push_back(std::move(backend));
  }
  return manifest;
}

}  // namespace opmux::plugin
