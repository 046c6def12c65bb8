#include "base/no_callback.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/manager.hpp"

// Plugins that a program loads by a path or by their query function, while it runs.
namespace opmux::plugin {

PluginInfo info_of(const PluginReport& report) {
  return {report.path.empty() ? report.found_in : report.path,
          report.name,
          report.state == PluginReport::State::loaded,
          report.reason,
          report.text,
          report.backends,
          report.implementations,
          report.found_in,
          report.version,
          report.vendor,
          report.digest,
          report.signer,
          report.warnings};
}

Result<PluginInfo> PluginManager::load_one(const std::function<PluginReport(Held&)>& load) {
  if (Status refused = base::refuse_callback(); !refused.ok()) return refused;
  Result<PluginInfo> info = Status(Code::unavailable, "plugin.loading",
                                   "this thread is loading a plugin; a plugin cannot load another");
  with_loader([&](Held& held) {
    const PluginReport report = load(held);
    tell(report);
    switch_backends(report.backends);
    const bool loaded = report.state == PluginReport::State::loaded;
    info = loaded ? Result<PluginInfo>(info_of(report))
                  : Status(Code::unavailable, report.reason,
                           base::concat(info_of(report).path, ": ", report.text));
  });
  return info;
}

Result<PluginInfo> PluginManager::load_file(const std::string& path) {
  if (!path.starts_with('/')) {
    return Status(Code::invalid_argument, "trust.relative",
                  base::concat("'", path,
                               "' is not an absolute path; plugins are never loaded relative to "
                               "the working directory"));
  }
  return load_one([&](Held& held) {
    if (options_.probe && held.verdicts == nullptr) {
      held.verdicts = std::make_unique<VerdictCache>(base::store_folder(environment_.state_dir),
                                                     verdict_context());
    }
    probe_files(held, options_);
    held.loader->set_trust(trust_settings(options_));
    return held.loader->load_now(path, "program");
  });
}

Result<PluginInfo> PluginManager::load_static(opmux_plugin_query_fn query) {
  return load_one([&](Held& held) { return held.loader->load_static(query, "program"); });
}

}  // namespace opmux::plugin
