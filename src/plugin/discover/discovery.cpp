#include "plugin/discover/discovery.hpp"

#include <algorithm>
#include <cerrno>
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
  std::vector<std::string> names, paths;
  if (const int failed = base::read_names(folder, names); failed != 0) {
    return Status(
        failed == ENOENT ? Code::not_found : Code::failed, "plugin.folder",
        base::concat("cannot read ", folder, ": ", std::generic_category().message(failed)));
  }
  for (const std::string& name : names) {
    if (!name.starts_with('.') && name.ends_with(suffix)) paths.push_back(fs::path(folder) / name);
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
                              from.device_type, from.flags,  {},
                              from.device_name};
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
