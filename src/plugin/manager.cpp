#include "plugin/manager.hpp"

#include <algorithm>
#include <filesystem>

#include "base/no_callback.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/open/opened_file.hpp"
#include "plugin/probe/probe.hpp"
#include "policy/rules/policy_entry.hpp"

extern "C" int32_t opmux_plugin_query_v1_reference(const opmux_host* host, opmux_plugin* out);

namespace opmux::plugin {
namespace {

bool implements(const Manifest::Backend& backend, std::string_view op) {
  return std::ranges::any_of(backend.implementations,
                             [&](const auto& implementation) { return implementation.op == op; });
}

constexpr std::string_view kOwn = "installation", kFromEnvironment = "OPMUX_PLUGIN_PATH";

/// The reason of files that are not opened because their backends are switched off.
constexpr std::string_view kOff = "backend.disabled";

Status was_off(std::string_view name) {
  return {Code::unavailable, std::string(kOff),
          base::concat(name, " is switched off, so it was not opened")};
}

/// The backend in a file of the installation, libopmux_NAME.so; empty if it is named otherwise.
std::string backend_of_installed(std::string_view path) {
  constexpr std::string_view kStart = "libopmux_", kEnd = ".so";
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kStart) || !name.ends_with(kEnd)) return {};
  name.remove_prefix(kStart.size());
  return std::string(name.substr(0, name.size() - kEnd.size()));
}

struct PluginFolder {
  std::string path;
  std::string_view found_in;
};

/// The folders that are searched for plugins, in this order; never the working directory.
std::vector<PluginFolder> plugin_folders(const PluginOptions& options, bool own_backends,
                                         const policy::Environment& environment) {
  std::vector<PluginFolder> folders;
  // The installation may lack backends, but a folder that was named explicitly must exist.
  const std::string own = own_backends ? default_folder() : std::string();
  if (std::error_code ignored; !own.empty() && std::filesystem::exists(own, ignored)) {
    folders.push_back({own, kOwn});
  }
  for (const std::string& path : environment.plugin_path) {
    folders.push_back({path, kFromEnvironment});
  }
  for (const std::string& path : options.folders) folders.push_back({path, "options"});
  return folders;
}

/// Where signatures are required, environment variables must not select code.
Status environment_may_name_code(const PluginOptions& options) {
  if (options.trust != Trust::signed_only) return {};
  return {Code::invalid_argument, "trust.environment",
          "the program loads only signed plugins from the folders that it names itself; "
          "OPMUX_PLUGIN_PATH is ignored"};
}

std::string id_of(const Manifest::Backend& backend, const Manifest::Implementation& of) {
  return base::concat(of.op, "/", backend.name, ".", of.variant);
}

/// The record of an implementation before its plugin is loaded: its names, but no functions.
registry::ImplementationPtr deferred_record(const Manifest::Backend& backend,
                                            const Manifest::Implementation& from) {
  auto record = std::make_shared<registry::ImplementationRecord>();
  record->id = id_of(backend, from);
  record->op = from.op;
  record->variant = from.variant;
  record->vendor = backend.vendor;
  record->kind = static_cast<Kind>(backend.kind);
  record->priority = priority_of(record->kind);
  record->deferred = true;
  return record;
}

/// The cached verdict, or the result of probing the file now. A verdict of a probe that lacked a
/// layer of confinement does not count where all are required.
ProbeResult verdict_of(VerdictCache& verdicts, const CheckedFile& file, const LibraryFile& target,
                       Confinement confinement) {
  std::optional<ProbeResult> known = verdicts.find(file.digest);
  if (known && (known->missing.empty() || confinement == Confinement::available)) {
    return *std::move(known);
  }
  ProbeResult found = probe(probe_program(), target, confinement);
  verdicts.keep(file.digest, found);
  return found;
}

}  // namespace

PluginManager::PluginManager(registry::Registry& registry, dispatch::Engine& engine,
                             base::EventLog& log, const policy::Environment& environment,
                             const policy::PolicySource& policies,
                             crash::QuarantineManager& quarantine)
    : registry_(registry),
      engine_(engine),
      log_(log),
      environment_(environment),
      policies_(policies),
      quarantine_(quarantine) {}

bool PluginManager::denied(const Manifest::Backend& backend, std::string_view op) const {
  const std::shared_ptr<const policy::PolicySet> set = policies_.set();
  return std::ranges::all_of(backend.implementations, [&](const auto& implementation) {
    if (implementation.op != op) return true;
    const std::string id = id_of(backend, implementation);
    const auto kind = static_cast<Kind>(backend.kind);
    return std::ranges::any_of(set->layers, [&](const policy::PolicyLayerPtr& layer) {
      return policy::denies(*layer, {id, kind, backend.vendor});
    });
  });
}

bool PluginManager::is_off(const Manifest::Backend& backend) const {
  const auto wish = environment_.backends.find(backend.name);
  if (wish != environment_.backends.end()) return !wish->second;
  return (backend.flags & OPMUX_BACKEND_DEFAULT_OFF) != 0;
}

bool PluginManager::all_off(const Manifest& manifest) const {
  return !manifest.backends.empty() &&
         std::ranges::all_of(manifest.backends,
                             [&](const Manifest::Backend& backend) { return is_off(backend); });
}

Status PluginManager::skip_if_off(Held& held, const std::string& path) const {
  const std::string name = backend_of_installed(path);
  const auto wish = environment_.backends.find(name);
  if (wish == environment_.backends.end() || wish->second) return {};
  held.off[name] = path;
  return was_off(name);
}

void PluginManager::start(const PluginOptions& options, bool own_backends) {
  Held held;
  options_ = options;
  installation_ = installation_settings(options);
  // Code of a file in which a process crashed does not run, not even in a probe.
  const auto quarantined = [this](const CheckedFile& file) {
    return quarantine_.check_plugin(journal_part(file));
  };
  held.loader = std::make_unique<Loader>(registry_, trust_settings(options),
                                         std::vector<Loader::Gate>{quarantined});
  // The reference belongs to the library, so only a lack of memory can refuse it.
  if (held.loader->load_static(&opmux_plugin_query_v1_reference).state ==
      PluginReport::State::refused) {
    throw std::bad_alloc();
  }
  const bool others = !environment_.plugin_path.empty() || !options.folders.empty();
  if (options.probe && others) {
    held.verdicts = std::make_unique<VerdictCache>(base::store_folder(environment_.state_dir),
                                                   verdict_context());
  }
  held_.with([&](Held& mine) {
    mine = std::move(held);
    read_folders(mine, options, own_backends);
    if (mine.verdicts != nullptr && !mine.verdicts->folder_state().ok()) {
      log_.tell(Level::warning, "store.folder", "", "", "", [&] {
        return "probe verdicts of plugins cannot be stored and are kept in memory only: " +
               std::string(mine.verdicts->folder_state().message());
      });
    }
    // Specialization points are answered without a decision, so their plugins cannot be deferred.
    std::vector<PluginReport> loaded;
    const auto has_points = [this](const Manifest& manifest) {
      return !manifest.points.empty() && !all_off(manifest);
    };
    if (!mine.loader->load_waiting(has_points, loaded)) throw std::bad_alloc();
    for (const PluginReport& report : mine.loader->reports()) tell(report);
    define_operators(*mine.loader);
    note_waiting(mine);
  });
}

void PluginManager::probe_files(Held& held, const PluginOptions& options) {
  if (held.verdicts == nullptr) return;
  const Confinement confinement =
      options.require_confinement ? Confinement::all : Confinement::available;
  held.loader->try_out_with([this, verdicts = held.verdicts.get(), confinement](
                                const CheckedFile& file, const LibraryFile& target) {
    ProbeResult verdict = verdict_of(*verdicts, file, target, confinement);
    tell_missing(verdict.missing);
    return verdict;
  });
}

void PluginManager::read_folders(Held& held, const PluginOptions& options, bool own_backends) {
  using When = Loader::When;
  const Status from_environment = environment_may_name_code(options);
  for (const PluginFolder& folder : plugin_folders(options, own_backends, environment_)) {
    const bool own = folder.found_in == kOwn;
    if (!own) probe_files(held, options);
    held.loader->skip_with(!own ? Loader::Skip() : [this, &held](const std::string& path) {
      return skip_if_off(held, path);
    });
    held.loader->set_trust(own ? installation_ : trust_settings(options));
    Status status = from_environment;
    if (!status.ok() && folder.found_in == kFromEnvironment) {
      held.loader->refuse(folder.path, folder.found_in, status);
    } else {
      status =
          held.loader->load_folder(folder.path, folder.found_in, own ? When::now : When::wanted);
    }
    if (status.ok()) continue;
    log_.tell(Level::warning, "plugin.folder", "", "", folder.path,
              [&] { return std::string(status.message()); });
  }
  held.loader->skip_with({});
}

void PluginManager::tell_missing(const std::vector<std::string>& layers) {
  if (layers.empty()) return;
  const std::string names = base::join(layers, ", ");
  log_.tell(Level::warning, "probe.unconfined", "", "", names, [&] {
    return "the system lacks these layers of the confinement in which plugins are probed: " + names;
  });
}

void PluginManager::tell(const PluginReport& report) {
  if (report.state != PluginReport::State::refused || report.reason == kOff) return;
  log_.tell(Level::warning, "plugin.refused", "", "", report.path,
            [&] { return report.path + ": " + report.text; });
}

void PluginManager::define_operators(const Loader& loader) {
  std::vector<registry::Batch> batches;
  for (const auto& waiting : loader.waiting()) {
    batches.emplace_back().operators = waiting.manifest.operators;
    batches.back().backend.plugin = waiting.manifest.name;
    for (const Manifest::Backend& backend : waiting.manifest.backends) {
      // Policies may use the name before the plugin is loaded; a refused one is refused again then.
      if (!backend.device_name.empty()) {
        (void)name_device_type(backend.device_type, backend.device_name);
      }
    }
  }
  // A refused operator is refused again, and logged, when its plugin is loaded.
  (void)registry_.add_each(batches);
}

std::vector<std::string> PluginManager::waiting_backends() {
  return held_.with([](Held& held) {
    std::vector<std::string> names;
    if (held.loader == nullptr) return names;
    for (const auto& waiting : held.loader->waiting()) {
      for (const Manifest::Backend& backend : waiting.manifest.backends) {
        names.push_back(backend.name);
      }
    }
    for (const auto& [name, path] : held.off) names.push_back(name);
    return names;
  });
}

std::vector<crash::JournalPart> PluginManager::waiting_parts() {
  return held_.with([](Held& held) {
    std::vector<crash::JournalPart> parts;
    if (held.loader == nullptr) return parts;
    for (const auto& waiting : held.loader->waiting()) {
      // As the loader does: the build id that the plugin states, otherwise the file's.
      const std::string& stated = waiting.manifest.build_id;
      const std::string build = stated.empty() ? build_id_of(waiting.file) : stated;
      for (const Manifest::Backend& backend : waiting.manifest.backends) {
        parts.push_back(crash::backend_part(backend.name, build, false));
        for (const Manifest::Implementation& each : backend.implementations) {
          parts.push_back({id_of(backend, each), parts.back().build, false});
        }
      }
    }
    return parts;
  });
}

void PluginManager::note_waiting(const Held& held) {
  const Loader& loader = *held.loader;
  off_names_.update([&](std::vector<std::string>& names) {
    names.clear();
    for (const auto& [name, path] : held.off) names.push_back(name);
    for (const auto& waiting : loader.waiting()) {
      if (!all_off(waiting.manifest)) continue;
      for (const Manifest::Backend& backend : waiting.manifest.backends) {
        names.push_back(backend.name);
      }
    }
    return true;
  });
  waiting_.update([&](WaitingImplementations& all) {
    all.clear();
    for (const auto& waiting : loader.waiting()) {
      for (const Manifest::Backend& backend : waiting.manifest.backends) {
        const bool off = is_off(backend);
        for (const Manifest::Implementation& each : backend.implementations) {
          auto& of_operator = all[each.op];
          if (!off) of_operator.push_back(deferred_record(backend, each));
        }
      }
    }
    return true;
  });
  some_wait_.store(!loader.waiting().empty());
}

std::vector<registry::ImplementationPtr> PluginManager::implementations_of(
    std::string_view op) const {
  if (!some_wait_.load()) return {};
  const auto waiting = waiting_.get();
  const auto found = waiting->find(op);
  return found == waiting->end() ? std::vector<registry::ImplementationPtr>() : found->second;
}

void PluginManager::mark_waiting() {
  if (!some_wait_.load()) return;
  const auto waiting = waiting_.get();
  for (const auto& [op, implementations] : *waiting) {
    if (dispatch::OperatorSlot* slot = engine_.find(op)) slot->plugins_wait.store(true);
  }
}

void PluginManager::switch_backends(const std::vector<std::string>& names) {
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  for (const std::string& name : names) {
    const auto wanted = environment_.backends.find(name);
    const auto found = snapshot->backends.find(name);
    if (wanted == environment_.backends.end() || found == snapshot->backends.end()) continue;
    found->second->set_enabled(wanted->second);
    engine_.backend_changed(*found->second);
  }
}

void PluginManager::with_loader(const std::function<void(Held&)>& load) {
  if (loading_.load() == std::this_thread::get_id()) return;
  held_.with([&](Held& held) {
    if (held.loader == nullptr) return;
    struct Loading {
      explicit Loading(std::atomic<std::thread::id>& by) : thread(by) {
        thread.store(std::this_thread::get_id());
      }
      ~Loading() { thread.store({}); }
      std::atomic<std::thread::id>& thread;
    };
    {
      const Loading loading(loading_);
      load(held);
    }
    note_waiting(held);
  });
}

void PluginManager::load(const std::function<bool(const Manifest&)>& wanted) {
  if (base::NoCallbackGuard::active() != nullptr) return;
  bool enough = true;
  with_loader([&](Held& held) {
    std::vector<PluginReport> loaded;
    enough = held.loader->load_waiting(wanted, loaded);
    for (const PluginReport& report : loaded) {
      tell(report);
      switch_backends(report.backends);
    }
  });
  if (!enough) throw std::bad_alloc();
}

bool PluginManager::open_backend(std::string_view name) {
  bool found = false;
  load([&](const Manifest& manifest) {
    const bool has = std::ranges::find(manifest.backends, name, &Manifest::Backend::name) !=
                     manifest.backends.end();
    found |= has;
    return has;
  });
  with_loader([&](Held& held) {
    const auto at = held.off.find(name);
    if (at == held.off.end()) return;
    found = true;
    held.loader->set_trust(installation_);
    const PluginReport report = held.loader->load_skipped(at->second, kOwn);
    held.off.erase(at);
    tell(report);
    switch_backends(report.backends);
  });
  return found;
}

void PluginManager::load_for(dispatch::OperatorSlot& slot) {
  const std::string& op = slot.name();
  load([&](const Manifest& manifest) {
    return std::ranges::any_of(manifest.backends, [&](const Manifest::Backend& backend) {
      return implements(backend, op) && !denied(backend, op) && !is_off(backend);
    });
  });
  // Denied plugins are considered again when the policy changes.
  slot.plugins_wait.store(false);
}

void PluginManager::warm_up() {
  if (some_wait_.load()) load([this](const Manifest& manifest) { return !all_off(manifest); });
}

std::vector<PluginInfo> PluginManager::report() {
  warm_up();
  return held_.with([](Held& held) {
    std::vector<PluginInfo> all;
    if (held.loader == nullptr) return all;
    for (const PluginReport& report : held.loader->reports()) {
      all.push_back(info_of(report));
      if (report.state != PluginReport::State::waiting) continue;
      const Status why = was_off(report.name);
      all.back().code = why.reason();
      all.back().reason = why.message();
    }
    return all;
  });
}

}  // namespace opmux::plugin
