#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <opmux/runtime.hpp>

#include "base/fork_guarded.hpp"
#include "base/published.hpp"
#include "dispatch/engine.hpp"
#include "plugin/loader.hpp"
#include "plugin/verdict_cache.hpp"
#include "policy/environment.hpp"
#include "registry/registry.hpp"
#include "telemetry/event_log.hpp"

namespace opmux::runtime {

/// The plugins of one runtime. Those of the installation are loaded at once; others are tried in a
/// process of their own and loaded when a decision could use them. Thread-safe.
class PluginShelf {
 public:
  /// Whether nothing of this backend for this operator may be used.
  using Denied = std::function<bool(const plugin::Manifest::Backend& backend, std::string_view op)>;

  PluginShelf(registry::Registry& registry, dispatch::Engine& engine, telemetry::EventLog& log,
              const policy::Environment& environment, Denied denied);

  /// Finds what there is. Call it once.
  void start(const Options& options);
  /// Names of backends that wait.
  std::vector<std::string> waiting_backends();
  /// Tells the engine which operators have implementations that wait.
  void mark_waiting();

  /// Loads what waits and could run this operator.
  void load_for(dispatch::OperatorSlot& slot);
  /// Loads everything that waits.
  void warm_up();

  /// Everything found and what became of it; loads what waits.
  std::vector<PluginInfo> report();

 private:
  struct Held {
    std::unique_ptr<plugin::VerdictCache> verdicts;  ///< null if nothing is tried
    std::unique_ptr<plugin::Loader> loader;
  };

  void read_folders(Held& held, const Options& options);
  void load(const std::function<bool(const plugin::Manifest&)>& wanted);
  /// In one go: each publication copies what is there.
  void define_operators(const plugin::Loader& loader);
  void note_waiting(const plugin::Loader& loader);
  void tell(const plugin::PluginReport& report);
  void switch_backends(const std::vector<std::string>& names);

  registry::Registry& registry_;
  dispatch::Engine& engine_;
  telemetry::EventLog& log_;
  const policy::Environment& environment_;
  Denied denied_;
  std::atomic<bool> some_wait_{false};
  /// Operators with implementations that wait; apart, so that publishing takes no lock of loading.
  base::Published<std::vector<std::string>> waiting_ops_;
  /// A plugin that calls operators while it is loaded waits for nobody.
  std::atomic<std::thread::id> loading_{};
  base::ForkGuarded<Held> held_;
};

}  // namespace opmux::runtime
