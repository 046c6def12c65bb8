#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <opmux/runtime.hpp>

#include "base/clock.hpp"
#include "base/fork_guarded.hpp"
#include "base/published.hpp"
#include "base/thread_pool.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/packed_constant.hpp"
#include "health/device_health.hpp"
#include "plugin/host.hpp"
#include "plugin/loader.hpp"
#include "policy/environment.hpp"
#include "policy/scope_table.hpp"
#include "registry/registry.hpp"
#include "telemetry/event_log.hpp"

namespace opmux::runtime {

/// Everything a runtime consists of, wired together. Thread-safe.
class Core {
 public:
  static Result<std::unique_ptr<Core>> create(const Options& options);
  ~Core();

  registry::Registry& registry() { return registry_; }
  dispatch::Engine& engine() { return engine_; }
  policy::ScopeTable& scopes() { return scopes_; }
  health::DeviceHealth& health() { return health_; }
  const policy::Environment& environment() const { return environment_; }
  telemetry::EventLog& log() { return log_; }
  const std::shared_ptr<dispatch::PackStore>& packs() const { return packs_; }

  /// Makes what the registry and the policies hold now the state in force.
  void publish();

  /// Checks a policy, tries it on every operator, and puts it in force or changes nothing.
  Status set_policy(const Policy& policy);
  Policy policy();
  /// Lends calls the threads of the process's OpenMP runtime instead of its own.
  Status use_openmp();
  std::shared_ptr<const policy::PolicySet> policies();

  Result<Registration> implement(const Implementation& implementation);
  uint32_t tag(std::string_view word);
  std::vector<PluginInfo> plugins();
  /// Backends that some policy of the runtime denies may not answer points.
  bool backend_denied(const registry::Backend& backend);

 private:
  Core(const Options& options, policy::Environment environment);
  Status start(const Options& options);
  Status load_plugins(const Options& options);
  Status apply_backend_switches();
  /// An error that a device found after the call that caused it had returned.
  void note_device_error(Device device, const void* stream, int32_t code);
  std::vector<std::string> suspects(Device device, const void* stream);

  policy::Environment environment_;
  telemetry::EventLog log_;
  base::SteadyClock clock_;
  health::DeviceHealth health_;
  policy::ScopeTable scopes_;
  std::shared_ptr<dispatch::PackStore> packs_;
  const int thread_limit_;  ///< as somebody said, or 0
  base::ThreadPool threads_;
  dispatch::Engine engine_;
  registry::Registry registry_;
  plugin::HostListener listener_;

  policy::PolicyLayerPtr environment_layer_;
  /// Set in code. A child forked at any moment must find it: a deny holds there too.
  base::Published<policy::PolicyLayerPtr> code_layer_;
  base::ForkGuarded<std::unordered_map<std::string, uint32_t>> tags_;
  std::atomic<uint32_t> last_tag_{0};  ///< apart: a number never comes to mean another word
  struct Loaded {
    std::unique_ptr<plugin::Loader> loader;
  };
  base::ForkGuarded<Loaded> loaded_;
};

/// Makes what the scopes of this thread refer to. What a thread makes later goes before it.
void make_room_for_scopes();

/// Whether the condition of every rule can be asked of one of the operators that it is for, as far
/// as there are any yet.
Status check_conditions(const Policy& policy, const registry::RegistrySnapshot& registry);

/// Whether conditions can be asked, and a policy leaves every operator a candidate where none
/// applies, or says allow_none.
Status dry_run(const policy::PolicySet& policies, const registry::RegistrySnapshot& registry);

}  // namespace opmux::runtime
