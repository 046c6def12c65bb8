#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <opmux/runtime.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "base/system/clock.hpp"
#include "base/system/trust_file.hpp"
#include "base/thread_pool.hpp"
#include "crash/quarantine_manager.hpp"
#include "dispatch/decide/lock_fit.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/packed_constant.hpp"
#include "plugin/host.hpp"
#include "plugin/manager.hpp"
#include "policy/files/policy_file_watcher.hpp"
#include "policy/policy_store.hpp"
#include "policy/rules/environment.hpp"
#include "policy/rules/scope_table.hpp"
#include "registry/registry.hpp"
#include "replay/call_dumper.hpp"
#include "replay/recorder.hpp"
#include "runtime/jobs/health_monitor.hpp"
#include "runtime/jobs/publisher.hpp"
#include "shadow/shadow_checker.hpp"
#include "tune/tuning_table.hpp"

namespace opmux::runtime {

/// All parts of a runtime, wired together. Thread-safe.
class Core final : private shadow::RowUser {
 public:
  /// The rules of the trust file apply if they are stricter than the options.
  static Result<std::unique_ptr<Core>> create(const Options& options,
                                              const base::TrustFile& trust_file = {});
  ~Core() override;

  registry::Registry& registry() { return registry_; }
  dispatch::Engine& engine() { return engine_; }
  policy::ScopeTable& scopes() { return scopes_; }
  HealthMonitor& health() { return health_; }
  /// Health of backends and devices, shadow check, operators without candidates and refused
  /// policies.
  HealthReport health_report();
  shadow::ShadowChecker& shadow() { return shadow_; }
  const shadow::ShadowChecker& shadow() const { return shadow_; }
  const policy::Environment& environment() const { return environment_; }
  base::EventLog& log() { return log_; }
  const std::shared_ptr<dispatch::PackStore>& packs() const { return packs_; }

  policy::PolicyStore& sources() { return sources_; }
  base::Maintenance& maintenance() { return maintenance_; }
  /// Runs all due maintenance on the calling thread.
  void tick(uint64_t now_ns);
  policy::PolicyFileWatcher& files() { return files_; }
  crash::QuarantineManager& quarantine() { return quarantine_; }
  replay::CallRecorder& recorder() { return recorder_; }
  const tune::TuningTable& tuning() const { return tuning_; }
  /// Uses the bundles that are in the places of create() now. Fails with `frozen`.
  Status reload_tuning();
  /// The faster implementations that the shadow check found.
  std::vector<TuningProposal> proposals() const { return shadow_.tuner().proposals(); }

  /// Publishes the current registry and policies to the engine; returns the new generation.
  uint64_t publish() { return publisher_.publish(); }
  /// Null removes the selector.
  Status set_selector(std::shared_ptr<const Selector> selector);
  /// The decisions that were made so far outside scopes.
  Lockfile lock();
  /// Refuses all later changes. Decisions follow the current ones or, in mode static, the lockfile.
  Result<Lockfile> freeze();
  /// Refuses all later changes. Decisions follow the given lockfile.
  Status freeze(const Lockfile& lock, std::string_view name);
  Status check_lock(const Lockfile& lock, std::string_view name);
  bool frozen() const { return registry_.frozen(); }

  /// States the rank of the process for rules; nullopt: not stated.
  Status set_rank(std::optional<int> rank, std::optional<int> tp_size);
  std::vector<policy::Setting> rank_settings() const;

  /// Runs parallel work on the threads of the process's OpenMP runtime instead of the thread pool.
  Status use_openmp();

  /// Fails with `not_found` and suggests the nearest name.
  Result<Operator> op(std::string_view name);
  Result<Registration> implement(const Implementation& implementation);
  /// Defines operators and registers implementations, all or nothing, with one publication.
  Result<Registration> implement(std::span<const Implementation> implementations,
                                 std::span<const Definition> operators);
  uint32_t tag(std::string_view word);
  /// The lines of `opmux config show` about the trust file; empty if there is none.
  std::vector<policy::Setting> trust_settings() const;
  plugin::PluginManager& plugins() { return plugins_; }
  /// Whether a policy of the runtime denies this backend, so that it may not answer points.
  bool backend_denied(const registry::Backend& backend);

 private:
  Core(const Options& options, policy::Environment environment, const RecordOptions& record,
       base::TrustRules trust);
  Status start(const Options& options);
  Status use_row(const std::string& op, const tune::TuningRow& row) override;
  void refuse_changes(bool on) noexcept;
  /// Refuses changes, and allows them again unless `kept` is set.
  struct Refusal {
    explicit Refusal(Core& of) : core(of) { core.refuse_changes(true); }
    ~Refusal();
    Refusal(const Refusal&) = delete;
    Refusal& operator=(const Refusal&) = delete;
    Core& core;
    bool kept = false;
  };
  Result<Lockfile> freeze_by_file(const std::string& path);
  Status freeze_by(const Lockfile& lock, std::string_view name);
  Status take_lock(const Lockfile& lock, std::string_view name);
  dispatch::LockSurroundings surroundings() { return {registry_.snapshot(), sources_.set()}; }
  Status apply_backend_switches();
  void open_bundles(const PluginOptions& options);
  std::unique_ptr<replay::CallDumper> dumper_of(const RecordOptions& record);
  const dispatch::TapView& taps() const;
  /// Logs the operators that a policy of the start names and that do not exist yet: "policy.op".
  void log_unknown_operators(const Policy& policy, std::string_view source);
  /// Records an error that a device reported after the call that caused it had returned.
  void note_device_error(Device device, const void* stream, int32_t code);
  std::vector<std::string> suspects(Device device, const void* stream);

  // Each member uses only members above it, and those that the constructor attaches to it.
  policy::Environment environment_;
  const base::TrustRules trust_;
  base::EventLog log_;
  base::SteadyClock clock_;
  base::Maintenance maintenance_;  ///< the destructor stops it, because its jobs use members below
  policy::ScopeTable scopes_;
  std::shared_ptr<dispatch::PackStore> packs_;
  const int thread_limit_;  ///< from options or environment; 0 = not set
  base::ThreadPool threads_;
  crash::QuarantineManager quarantine_;
  registry::Registry registry_;
  /// Must be usable in a child that was forked at any moment, because denials apply there too.
  policy::PolicyStore sources_;
  HealthMonitor health_;
  replay::CallRecorder recorder_;
  shadow::ShadowChecker shadow_;
  tune::TuningTable tuning_;
  const std::unique_ptr<replay::CallDumper> dumper_;  ///< null if no dump is asked for
  dispatch::Engine engine_;
  plugin::HostListener listener_;
  plugin::PluginManager plugins_;
  Publisher publisher_;
  policy::PolicyFileWatcher files_;
  base::ForkMutex freezing_;
  std::atomic<bool> rank_by_program_{false};  ///< set_rank() was called
};

/// Creates the thread-local objects that scopes use. Thread-locals that are created later are
/// destroyed earlier.
void make_room_for_scopes();

}  // namespace opmux::runtime
