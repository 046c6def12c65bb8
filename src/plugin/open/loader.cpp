#include "plugin/open/loader.hpp"

#include <algorithm>
#include <optional>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/open/availability.hpp"
#include "plugin/open/opened_file.hpp"
#include "plugin/trust/elf_reader.hpp"

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
  std::vector<registry::Batch> batches = contents.batches;
  for (registry::Batch& batch : batches) watch_availability(batch.backend);
  if (!contents.operators.empty()) {
    registry::Batch& alone = batches.emplace_back();
    alone.operators = contents.operators;
    alone.backend.plugin = contents.name;
  }
  for (const registry::BatchResult& result : registry_.add_each(batches)) {
    add_to_report(result, report);
  }
  if (report.refused.empty() || !report.backends.empty()) return {};
  return registry::status_of(report.refused.front());
}

Result<CheckedFile> Loader::checked(const std::string& path, PluginReport& report) const {
  Result<CheckedFile> file = check_file(path, trust_);
  if (!file) return file;
  report.path = file->path;
  report.digest = file->digest;
  report.signer = file->signer;
  for (const Status& warning : file->warnings) report.warnings.push_back(warning.to_string());
  if (Status refused = pass_gates(*file); !refused.ok()) return refused;
  return file;
}

Result<Manifest> Loader::tried(const CheckedFile& file) const {
  LibraryFile as = library_file(file);
  SealedFile sealed;
  if (file.sealed) {
    Result<SealedFile> copy = sealed_copy(file);
    if (!copy) return copy.error();
    sealed = *std::move(copy);
    as = sealed.as(file);
  }
  ProbeResult verdict = try_out_(file, as);
  if (verdict.ok()) return std::move(verdict.manifest);
  return Status(Code::declined, std::move(verdict.code), std::move(verdict.text));
}

crash::JournalPart journal_part(const CheckedFile& file) {
  return crash::plugin_part(file.path, file.digest.empty() ? build_id_of(file) : file.digest);
}

Status Loader::open_into(const CheckedFile& file, PluginReport& report) {
  SealedFile sealed;
  if (file.sealed) {
    Result<SealedFile> copy = sealed_copy(file);
    if (!copy) return copy.error();
    sealed = *std::move(copy);
  }
  const uint32_t part = crash::note_part(journal_part(file));
  std::optional<dispatch::RunningCallGuard> inside;
  const auto enter = [&](crash::Phase phase) {
    inside.reset();
    inside.emplace(part, phase);
  };
  enter(crash::Phase::constructor);
  Result<OpenedFile> opened = open_once(file, std::move(sealed));
  if (!opened) return opened.error();
  const Result<ReadyPlugin> plugin =
      make_ready(opened->query, opened->build_id, opened->code, enter);
  inside.reset();
  const bool can_go = plugin && (plugin->contents.functions.flags & OPMUX_PLUGIN_UNLOADABLE) != 0;
  if (!can_go) keep_for_ever(std::move(opened->code));
  return plugin ? stage(*plugin, report) : plugin.error();
}

void Loader::conclude(PluginReport& report, const Status& outcome) {
  report.state = outcome.ok() ? PluginReport::State::loaded : PluginReport::State::refused;
  report.reason = outcome.reason();
  report.text = outcome.message();
  if (outcome.ok() && !report.refused.empty()) {
    const Status first = registry::status_of(report.refused.front());
    report.reason = first.reason();
    report.text = first.message();
  }
}

PluginReport Loader::finish(PluginReport report, const Status& outcome) {
  conclude(report, outcome);
  return reports_.emplace_back(std::move(report));
}

const PluginReport* Loader::known(const std::string& path) const {
  const auto at = std::ranges::find(reports_, path, &PluginReport::path);
  return at == reports_.end() ? nullptr : &*at;
}

PluginReport Loader::load(const std::string& path, std::string_view found_in) {
  if (const PluginReport* before = known(path)) return *before;
  PluginReport report;
  report.found_in = found_in;
  report.path = path;
  const Result<CheckedFile> file = checked(path, report);
  if (const PluginReport* before = known(report.path)) return *before;
  if (!file) return finish(std::move(report), file.error());
  if (try_out_) {
    const Result<Manifest> manifest = tried(*file);
    if (!manifest) return finish(std::move(report), manifest.error());
  }
  const Status outcome = open_into(*file, report);
  return finish(std::move(report), outcome);
}

PluginReport Loader::load_skipped(const std::string& path, std::string_view found_in) {
  std::erase_if(reports_, [&](const PluginReport& report) { return report.path == path; });
  return load(path, found_in);
}

PluginReport Loader::load_now(const std::string& path, std::string_view found_in) {
  const PluginReport* const before = known(path);
  if (before == nullptr || before->state == PluginReport::State::loaded)
    return load(path, found_in);
  if (before->state == PluginReport::State::refused) return load_skipped(path, found_in);
  std::vector<PluginReport> loaded;
  const std::string name = before->name;
  const auto is_this = [&](const Manifest& manifest) { return manifest.name == name; };
  if (!load_waiting(is_this, loaded)) throw std::bad_alloc();
  return *known(path);
}

void Loader::discover(const std::string& path, std::string_view found_in) {
  if (known(path) != nullptr) return;
  PluginReport report;
  report.found_in = found_in;
  report.path = path;
  Result<CheckedFile> file = checked(path, report);
  if (known(report.path) != nullptr) return;
  if (!file) {
    finish(std::move(report), file.error());
    return;
  }
  Result<Manifest> manifest = tried(*file);
  if (!manifest) {
    finish(std::move(report), manifest.error());
    return;
  }
  report.state = PluginReport::State::waiting;
  report.name = manifest->name;
  waiting_.push_back({*std::move(file), *std::move(manifest)});
  reports_.push_back(std::move(report));
}

bool Loader::load_waiting(const std::function<bool(const Manifest&)>& wanted,
                          std::vector<PluginReport>& results) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    if (!wanted(next->manifest)) {
      ++next;
      continue;
    }
    PluginReport& report = *std::ranges::find(reports_, next->file.path, &PluginReport::path);
    PluginReport loaded;
    const bool enough = base::if_memory([&] {
      loaded = report;
      conclude(loaded, open_into(next->file, loaded));
      results.push_back(loaded);
    });
    if (!enough) return false;
    report = std::move(loaded);
    next = waiting_.erase(next);
  }
  return true;
}

PluginReport Loader::load_static(opmux_plugin_query_fn query, std::string_view found_in) {
  PluginReport report;
  report.found_in = found_in;
  const Result<ReadyPlugin> plugin =
      make_ready(query, build_id_of_loaded(reinterpret_cast<const void*>(query)));
  const Status outcome = plugin ? stage(*plugin, report) : plugin.error();
  return finish(std::move(report), outcome);
}

void Loader::refuse(const std::string& path, std::string_view found_in, const Status& why) {
  PluginReport report;
  report.found_in = found_in;
  report.path = path;
  finish(std::move(report), why);
}

Status Loader::load_folder(const std::string& folder, std::string_view found_in, When when) {
  Status bad;
  if (!folder.starts_with('/')) {
    bad = {Code::invalid_argument, "trust.relative",
           base::concat("'", folder,
                        "' is not an absolute path; plugins are never loaded relative to the "
                        "working directory")};
  }
  const auto paths = bad.ok() ? list_files(folder, ".so") : std::vector<std::string>();
  if (!paths) bad = paths.error();
  if (!bad.ok()) {
    refuse(folder, found_in, bad);
    return bad;
  }
  for (const std::string& path : *paths) {
    if (Status skipped = skip_ ? skip_(path) : Status(); !skipped.ok()) {
      refuse(path, found_in, skipped);
      continue;
    }
    if (when == When::wanted && try_out_) {
      discover(path, found_in);
    } else {
      load(path, found_in);
    }
  }
  return {};
}

bool Loader::unload(std::string_view name) {
  const auto at = std::find_if(reports_.begin(), reports_.end(), [&](const PluginReport& report) {
    return report.name == name && report.state == PluginReport::State::loaded;
  });
  if (at == reports_.end()) return false;
  registry_.withdraw_backends(at->backends);
  reports_.erase(at);
  return true;
}

}  // namespace opmux::plugin
