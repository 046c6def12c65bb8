#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <opmux/options.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "crash/quarantine_manager.hpp"
#include "dispatch/engine.hpp"
#include "plugin/open/loader.hpp"
#include "plugin/probe/verdict_cache.hpp"
#include "policy/policy_source.hpp"
#include "policy/rules/environment.hpp"
#include "registry/registry.hpp"

namespace opmux::plugin {

/// A report as the program sees it.
PluginInfo info_of(const PluginReport& report);

/// The plugins of one runtime. Those of the installation are loaded at once. Others are probed in a
/// child process and loaded when a decision could use them. Thread-safe.
class PluginManager final : public policy::DeferredPlugins, public dispatch::PluginLoader {
 public:
  /// All of them must outlive the manager.
  PluginManager(registry::Registry& registry, dispatch::Engine& engine, base::EventLog& log,
                const policy::Environment& environment, const policy::PolicySource& policies,
                crash::QuarantineManager& quarantine);

  /// Finds and probes the plugins. Call it once.
  /// `own_backends`: also looks in the folder of the backends that are installed with the library.
  /// A backend that the environment switches off is not opened: one of the installation is
  /// recognized by its file, libopmux_NAME.so, others by the result of the probe.
  void start(const PluginOptions& options, bool own_backends);
  /// Names of the backends of plugins that are not loaded.
  std::vector<std::string> waiting_backends();
  /// The backends and implementations of these plugins, as the quarantine names them.
  std::vector<crash::JournalPart> waiting_parts();
  /// Loads the plugin of a backend that is switched off. Returns whether there is one.
  bool open_backend(std::string_view name);
  void mark_waiting() override;

  /// Loads the deferred plugins that implement this operator, unless policy denies them.
  void load_for(dispatch::OperatorSlot& slot) override;
  void warm_up() override;
  std::vector<registry::ImplementationPtr> implementations_of(std::string_view op) const override;
  std::vector<std::string> switched_off() const override { return *off_names_.get(); }

  /// Loads a file now, with the trust and the probe of the options. Fails with the reason of the
  /// refusal, or with "trust.relative".
  Result<PluginInfo> load_file(const std::string& path);
  /// Registers a plugin that is linked into the program. Fails with the reason of the refusal.
  Result<PluginInfo> load_static(opmux_plugin_query_fn query);

  /// The reports of all plugins; loads deferred plugins first.
  std::vector<PluginInfo> report();

 private:
  struct Held {
    std::unique_ptr<VerdictCache> verdicts;  ///< null if plugins are not probed
    std::unique_ptr<Loader> loader;
    /// Files of the installation that were not opened, by the names of their backends.
    std::map<std::string, std::string, std::less<>> off;
  };

  /// Whether policy denies all implementations of this operator in this backend.
  bool denied(const Manifest::Backend& backend, std::string_view op) const;
  /// Whether the environment, or the plugin itself, switches a backend off.
  bool is_off(const Manifest::Backend& backend) const;
  bool all_off(const Manifest& manifest) const;
  /// Refuses a file of the installation whose backend is switched off, and notes its path.
  Status skip_if_off(Held& held, const std::string& path) const;
  /// Runs `load` on the loader unless this thread is loading already.
  void with_loader(const std::function<void(Held&)>& load);
  void read_folders(Held& held, const PluginOptions& options, bool own_backends);
  /// Makes the loader probe files before it opens them, if the options ask for it.
  void probe_files(Held& held, const PluginOptions& options);
  Result<PluginInfo> load_one(const std::function<PluginReport(Held&)>& load);
  void load(const std::function<bool(const Manifest&)>& wanted);
  /// Defines the operators of deferred plugins in one batch, because each publication copies the
  /// registry.
  void define_operators(const Loader& loader);
  void note_waiting(const Held& held);
  void tell(const PluginReport& report);
  /// Logs the layers of confinement that a probe lacked.
  void tell_missing(const std::vector<std::string>& layers);
  void switch_backends(const std::vector<std::string>& names);

  registry::Registry& registry_;
  dispatch::Engine& engine_;
  base::EventLog& log_;
  const policy::Environment& environment_;
  const policy::PolicySource& policies_;
  crash::QuarantineManager& quarantine_;
  PluginOptions options_;       ///< set by start()
  TrustSettings installation_;  ///< for the backends of the installation; set by start()
  std::atomic<bool> some_wait_{false};
  /// The implementations in deferred plugins by operator; those of backends that are switched off
  /// are left out, but not their operators. Separate from held_, so that publishing does not wait
  /// for the lock that loading holds.
  using WaitingImplementations =
      std::map<std::string, std::vector<registry::ImplementationPtr>, std::less<>>;
  base::Published<WaitingImplementations> waiting_;
  base::Published<std::vector<std::string>> off_names_;  ///< backends that are not opened
  /// The thread that is loading. A plugin that calls operators while it is loaded would otherwise
  /// wait for itself.
  std::atomic<std::thread::id> loading_{};
  base::ForkGuarded<Held> held_;
};

}  // namespace opmux::plugin
