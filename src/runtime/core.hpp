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
#include "plugin/host.hpp"
#include "policy/environment.hpp"
#include "policy/scope_table.hpp"
#include "registry/registry.hpp"
#include "runtime/followed_files.hpp"
#include "runtime/health_keeper.hpp"
#include "runtime/lock_fit.hpp"
#include "runtime/maintenance.hpp"
#include "runtime/plugin_shelf.hpp"
#include "runtime/policy_sources.hpp"
#include "runtime/quarantine_keeper.hpp"
#include "runtime/recorder.hpp"
#include "runtime/shadow_keeper.hpp"
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
  HealthKeeper& health() { return health_; }
  ShadowKeeper& shadow() { return shadow_; }
  const policy::Environment& environment() const { return environment_; }
  telemetry::EventLog& log() { return log_; }
  const std::shared_ptr<dispatch::PackStore>& packs() const { return packs_; }

  PolicySources& sources() { return sources_; }
  Maintenance& maintenance() { return maintenance_; }
  /// Does what is due, on this thread.
  void tick(uint64_t now_ns);
  FollowedFiles& files() { return files_; }
  QuarantineKeeper& quarantine() { return quarantine_; }
  CallRecorder& recorder() { return recorder_; }

  /// Makes what the registry and the policies hold now the state in force; returns its generation.
  uint64_t publish();
  /// Null takes it back.
  Status set_selector(std::shared_ptr<const Selector> selector);
  /// The choices that were made so far outside of scopes.
  Lockfile lock();
  /// Takes no more changes, and chooses as it did so far or, in mode static, as its file says.
  Result<Lockfile> freeze();
  /// Takes no more changes, and chooses as a lockfile says.
  Status freeze(const Lockfile& lock, std::string_view name);
  Status check_lock(const Lockfile& lock, std::string_view name);
  bool frozen() const { return registry_.frozen(); }

  /// Lends calls the threads of the process's OpenMP runtime instead of its own.
  Status use_openmp();

  Result<Registration> implement(const Implementation& implementation);
  uint32_t tag(std::string_view word);
  PluginShelf& plugins() { return plugins_; }
  /// Backends that some policy of the runtime denies may not answer points.
  bool backend_denied(const registry::Backend& backend);

 private:
  Core(const Options& options, policy::Environment environment, const RecordOptions& record);
  std::function<void(const dispatch::FailedCall&)> on_failed();
  Status start(const Options& options);
  void lapse_in_time();
  void refuse_changes(bool on);
  Result<Lockfile> freeze_by_file(const std::string& path);
  Status freeze_by(const Lockfile& lock, std::string_view name);
  Status take_lock(const Lockfile& lock, std::string_view name);
  LockSurroundings surroundings() { return {registry_.snapshot(), sources_.set()}; }
  Status apply_backend_switches();
  bool denied(const plugin::Manifest::Backend& backend, std::string_view op);
  /// An error that a device found after the call that caused it had returned.
  void note_device_error(Device device, const void* stream, int32_t code);
  std::vector<std::string> suspects(Device device, const void* stream);

  policy::Environment environment_;
  std::function<std::chrono::sys_seconds()> utc_;
  telemetry::EventLog log_;
  QuarantineKeeper quarantine_;
  base::SteadyClock clock_;
  HealthKeeper health_;
  CallRecorder recorder_;
  ShadowKeeper shadow_;
  policy::ScopeTable scopes_;
  std::shared_ptr<dispatch::PackStore> packs_;
  const int thread_limit_;  ///< as somebody said, or 0
  base::ThreadPool threads_;
  dispatch::Engine engine_;
  registry::Registry registry_;
  plugin::HostListener listener_;

  /// A child forked at any moment must find them: a deny holds there too.
  PolicySources sources_;
  PluginShelf plugins_;
  FollowedFiles files_;
  struct Lock {
    Lockfile file;
    std::shared_ptr<const dispatch::LockSet> set;  ///< null: not frozen
  };
  base::ForkMutex freezing_;
  base::Published<Lock> lock_;
  base::Published<std::shared_ptr<const Selector>> selector_;
  Maintenance maintenance_;  ///< last of all that jobs use
  std::atomic<bool> lapsing_{false};
};

/// Makes what the scopes of this thread refer to. What a thread makes later goes before it.
void make_room_for_scopes();

/// Whether the condition of every rule can be asked of one of the operators that it is for, as far
/// as there are any yet.
Status check_conditions(const Policy& policy, const registry::RegistrySnapshot& registry);

}  // namespace opmux::runtime
