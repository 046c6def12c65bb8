#include "plugin/manifest.hpp"

#include <algorithm>

namespace opmux::plugin {

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
