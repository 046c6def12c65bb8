#include "plugin/loader.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/thread_state.hpp"
#include "plugin/discovery.hpp"
#include "plugin/library.hpp"

namespace opmux::plugin {
namespace {

void append(std::vector<registry::Refusal>& to, const std::vector<registry::Refusal>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void add_to_report(const registry::BatchResult& result, PluginReport& report) {
  append(report.refused, result.refused);
  if (result.backend == nullptr) return;
  report.backends.push_back(result.backend->name());
  for (const registry::ImplementationPtr& added : result.added) {
    report.implementations.push_back(added->id);
  }
}

}  // namespace

Status Loader::pass_gates(const CheckedFile& file) const {
  for (const Gate& gate : gates_) {
    if (Status refused = gate(file); !refused.ok()) return refused;
  }
  return {};
}

Status Loader::stage(const ReadyPlugin& plugin, PluginReport& report) {
  const PluginContents& contents = plugin.contents;
  report.name = contents.name;
  report.version = contents.version;
  report.vendor = contents.vendor;
  report.build_id = contents.build_id;
  report.refused = contents.refused;
  for (const registry::Batch& batch : contents.batches) {
    add_to_report(registry_.add(batch, true), report);
  }
  if (!contents.operators.empty()) {
    registry::Batch alone;
    alone.operators = contents.operators;
    alone.backend.plugin = contents.name;
    append(report.refused, registry_.add(alone, true).refused);
  }
  if (report.refused.empty() || !report.backends.empty()) return {};
  const registry::Refusal& first = report.refused.front();
  return {first.why.code(), std::string(first.why.reason()),
          base::concat(first.what, ": ", first.why.message())};
}

Status Loader::load_into(const CheckedFile& file, PluginReport& report) {
  if (Status refused = pass_gates(file); !refused.ok()) return refused;
  const base::ThreadStateGuard guard;
  const Result<Library> library = open_library(file.path, file.descriptor.get());
  if (!library) return library.error();
  const Result<ReadyPlugin> plugin = make_ready(library->query, library->build_id);
  return plugin ? stage(*plugin, report) : plugin.error();
}

PluginReport Loader::finish(PluginReport report, const Status& outcome) {
  report.state = outcome.ok() ? PluginReport::State::loaded : PluginReport::State::refused;
  report.reason = outcome.reason();
  report.text = outcome.message();
  if (outcome.ok() && !report.refused.empty()) {
    const registry::Refusal& first = report.refused.front();
    report.reason = first.why.reason();
    report.text = base::concat(first.what, ": ", first.why.message());
  }
  return reports_.emplace_back(std::move(report));
}

const PluginReport* Loader::known(const std::string& path) const {
  const auto at = std::ranges::find(reports_, path, &PluginReport::path);
  return at == reports_.end() ? nullptr : &*at;
}

PluginReport Loader::load(const std::string& path, std::string_view found_in) {
  if (const PluginReport* tried = known(path)) return *tried;
  PluginReport report;
  report.found_in = found_in;
  report.path = path;
  const Result<CheckedFile> file = check_file(path, trust_);
  if (!file) return finish(std::move(report), file.error());
  if (const PluginReport* tried = known(file->path)) return *tried;
  report.path = file->path;
  report.digest = file->digest;
  report.signer = file->signer;
  for (const Status& warning : file->warnings) report.warnings.push_back(warning.to_string());
  const Status outcome = load_into(*file, report);
  return finish(std::move(report), outcome);
}

PluginReport Loader::load_static(opmux_plugin_query_fn query) {
  PluginReport report;
  report.found_in = "built in";
  const Result<ReadyPlugin> plugin = make_ready(query);
  const Status outcome = plugin ? stage(*plugin, report) : plugin.error();
  return finish(std::move(report), outcome);
}

void Loader::refuse(const std::string& path, std::string_view found_in, const Status& why) {
  PluginReport report;
  report.found_in = found_in;
  report.path = path;
  finish(std::move(report), why);
}

Status Loader::load_folder(const std::string& folder, std::string_view found_in) {
  Status bad;
  if (!folder.starts_with('/')) {
    bad = {Code::invalid_argument, "trust.relative",
           base::concat("'", folder,
                        "' is not an absolute path; what lies in the working directory "
                        "is never loaded")};
  }
  const auto paths = bad.ok() ? list_files(folder, ".so") : std::vector<std::string>();
  if (!paths) bad = paths.error();
  if (!bad.ok()) {
    refuse(folder, found_in, bad);
    return bad;
  }
  for (const std::string& path : *paths) load(path, found_in);
  return {};
}

bool Loader::unload(std::string_view name) {
  const auto at = std::find_if(reports_.begin(), reports_.end(), [&](const PluginReport& report) {
    return report.name == name && report.state == PluginReport::State::loaded;
  });
  if (at == reports_.end()) return false;
  for (const std::string& backend : at->backends) registry_.withdraw_backend(backend);
  reports_.erase(at);
  return true;
}

}  // namespace opmux::plugin
