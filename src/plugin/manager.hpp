#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <opmux/options.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "dispatch/engine.hpp"
#include "plugin/open/loader.hpp"
#include "plugin/probe/verdict_cache.hpp"
#include "policy/policy_source.hpp"
#include "policy/rules/environment.hpp"
#include "registry/registry.hpp"

namespace opmux::plugin {

/// The plugins of one runtime. Those of the installation are loaded at once. Others are probed in a
/// child process and loaded when a decision could use them. Thread-safe.
class PluginManager final : public policy::DeferredPlugins, public dispatch::PluginLoader {
 public:
  /// All of them must outlive the manager.
  PluginManager(registry::Registry& registry, dispatch::Engine& engine, base::EventLog& log,
                const policy::Environment& environment, const policy::PolicySource& policies);

  /// Finds and probes the plugins. Call it once.
  /// `own_backends`: also looks in the folder of the backends that are installed with the library.
  void start(const PluginOptions& options, bool own_backends);
  /// Names of the backends of deferred plugins.
  std::vector<std::string> waiting_backends();
  void mark_waiting() override;

  /// Loads the deferred plugins that implement this operator, unless policy denies them.
  void load_for(dispatch::OperatorSlot& slot) override;
  void warm_up() override;

  /// The reports of all plugins; loads deferred plugins first.
  std::vector<PluginInfo> report();

 private:
  struct Held {
    std::unique_ptr<VerdictCache> verdicts;  ///< null if plugins are not probed
    std::unique_ptr<Loader> loader;
  };

  /// Whether policy denies all implementations of this operator in this backend.
  bool denied(const Manifest::Backend& backend, std::string_view op) const;
  void read_folders(Held& held, const PluginOptions& options, bool own_backends);
  void load(const std::function<bool(const Manifest&)>& wanted);
  /// Defines the operators of deferred plugins in one batch, because each publication copies the
  /// registry.
  void define_operators(const Loader& loader);
  void note_waiting(const Loader& loader);
  void tell(const PluginReport& report);
  /// Logs the layers of confinement that a probe lacked.
  void tell_missing(const std::vector<std::string>& layers);
  void switch_backends(const std::vector<std::string>& names);

  registry::Registry& registry_;
  dispatch::Engine& engine_;
  base::EventLog& log_;
  const policy::Environment& environment_;
  const policy::PolicySource& policies_;
  std::atomic<bool> some_wait_{false};
  /// Operators with implementations in deferred plugins. Separate from held_, so that publishing
  /// does not wait for the lock that loading holds.
  base::Published<std::vector<std::string>> waiting_ops_;
  /// The thread that is loading. A plugin that calls operators while it is loaded would otherwise
  /// wait for itself.
  std::atomic<std::thread::id> loading_{};
  base::ForkGuarded<Held> held_;
};

}  // namespace opmux::plugin
