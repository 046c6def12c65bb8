#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/fork_guarded.hpp"
#include "base/published.hpp"
#include "dispatch/call_frame.hpp"
#include "dispatch/failed_call.hpp"
#include "dispatch/operator_names.hpp"
#include "dispatch/operator_slot.hpp"
#include "dispatch/plan_roll.hpp"
#include "dispatch/reclaimer.hpp"
#include "registry/registry.hpp"
#include "telemetry/event_log.hpp"

namespace opmux::dispatch {

struct PlanControl;

/// What an engine works with; everything outlives it.
struct EngineParts {
  telemetry::EventLog* log = nullptr;
  health::HealthView* health = nullptr;
  const tune::TuningView* tuning = nullptr;  ///< may be null
  const base::Clock* clock = nullptr;
  /// The policy of a scope by its serial; null if it is gone.
  std::function<policy::PolicyLayerPtr(uint32_t serial)> scope_layer;
  base::ThreadPool* threads = nullptr;  ///< for calls that were lent none; may be null
  std::function<void()> on_cold_path;   ///< called where a call has to decide; may be empty
  /// Loads plugins that wait and implement this operator; its slot's mark says that there are any.
  std::function<void(OperatorSlot& slot)> load_waiting = {};
  std::function<void(const FailedCall& call)> on_failed = {};  ///< may be empty
  bool disabled = false;
  const TapView* taps = nullptr;  ///< may be null
};

/// Folded counters of one implementation.
struct ImplementationStats {
  std::string id;
  uint64_t calls = 0, declined = 0, failed = 0, resource = 0, invalid_argument = 0, device_lost = 0,
           stood_in = 0, packed_bytes = 0;
};

/// Compiles snapshots into operators' states and publishes them. Readers never wait; writers take
/// turns, build aside, and publish by one store per operator.
class Engine {
 public:
  explicit Engine(EngineParts parts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineParts& parts() const { return parts_; }

  /// What operators' states are compiled from.
  struct Sources {
    registry::RegistrySnapshotPtr registry;
    std::shared_ptr<const policy::PolicySet> policies;
    std::shared_ptr<const LockSet> lock = nullptr;       ///< null: not frozen
    std::shared_ptr<const Selector> selector = nullptr;  ///< null: none
  };
  /// Makes a registry and a policy the ones in force. Only operators that they change get a new
  /// epoch. Returns the generation. `latest` is asked when it is this writer's turn: whoever comes
  /// last publishes the newest.
  uint64_t publish(const std::function<Sources()>& latest);
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  /// The policy in force; for an operator that it does not change, its state has a part of an older
  /// one.
  std::shared_ptr<const policy::PolicySet> policies() const { return policies_.get(); }

  /// The operator of that name, or null. No lock.
  OperatorSlot* find(std::string_view op) const { return names_.find(op); }

  /// A class of calls that was decided outside of scopes, and what runs for it.
  struct DecidedClass {
    std::shared_ptr<const registry::OperatorRecord> op;
    policy::ClassFacts when;
    registry::ImplementationPtr implementation;
    bool beside_lock;  ///< the lock of a frozen runtime says nothing of it
    std::vector<registry::ImplementationPtr> order;  ///< who is tried, best first
    std::string note;  ///< of a preference that was not met, or another deviation
    uint64_t generation;
  };
  /// All that were decided since their operators changed.
  std::vector<DecidedClass> decided();

  /// Decides anew for every operator that has an implementation on this one's type of device.
  void health_changed(const registry::ImplementationRecord& implementation);
  /// Decides anew for one operator.
  void operator_changed(const std::string& op);
  /// Decides anew for every operator that has an implementation of this backend.
  void backend_changed(const registry::Backend& backend);

  /// Waits until no call is inside of implementations that were unpublished before.
  Status wait_for_retired();

  /// Takes over prepared states that were evicted from an operator's cache.
  void retire_prepared(OperatorSlot& slot, std::vector<PreparedPtr> evicted);
  /// Gives back what is idle: memory is short.
  void trim();

  void add_plan(const std::shared_ptr<PlanControl>& control);

  std::vector<ImplementationStats> stats();
  size_t retired_waiting();

 private:
  struct Published {
    registry::RegistrySnapshotPtr registry;
    std::shared_ptr<const LockSet> lock;
    std::shared_ptr<const Selector> selector;
    uint64_t taps_version = 0;
    struct Op {
      OperatorSlot* slot;
      std::shared_ptr<const registry::OperatorRecord> record;
    };
    std::vector<Op> operators;
    std::map<uint32_t, std::pair<std::string, std::shared_ptr<ImplementationState>>> states;
    std::vector<std::weak_ptr<PlanControl>> plans;
    std::vector<std::unique_ptr<OperatorSlot>> slots;
    Reclaimer reclaimer;
  };

  OperatorSlot* slot_for(Published& published,
                         const std::shared_ptr<const registry::Schema>& schema);
  void adopt(Published& published, registry::RegistrySnapshotPtr registry);
  ImplementationStates states_of(Published& published, const registry::OperatorRecord& op);
  std::unique_ptr<OperatorState> compile(Published& published, const Published::Op& op);
  void decide_anew(const std::function<bool(const registry::OperatorRecord&)>& concerned);
  void replace(Published& published, const Published::Op& op,
               std::vector<std::unique_ptr<Retired>>& retired);
  /// Gives each writer its turn, on what the engine published last.
  template <class Use>
  auto with_published(Use&& use);
  void restore(Published& published) const;
  /// Says who holds up what was retired, if that is much.
  void tell_if_waiting();
  void refresh_plans(const std::vector<std::shared_ptr<PlanControl>>& plans);
  std::vector<std::shared_ptr<PlanControl>> live_plans(Published& published);

  void after_fork();

  EngineParts parts_;
  std::atomic<uint64_t> generation_{0};
  OperatorNames names_;
  base::Published<policy::PolicySet> policies_;
  base::ForkGuarded<Published> published_;
  PlanRoll fork_sensitive_;
};

}  // namespace opmux::dispatch
