#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "base/system/clock.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/operator_names.hpp"
#include "dispatch/plan/plan_ids.hpp"
#include "dispatch/reclaim/reclaimer.hpp"
#include "policy/rules/scope_table.hpp"
#include "registry/registry.hpp"

namespace opmux::dispatch {

struct BoundPlanState;
class PackStore;

/// Loads plugins on demand. Thread-safe.
class PluginLoader {
 public:
  virtual ~PluginLoader() = default;
  /// Loads the deferred plugins that implement this operator. Called only if the slot's
  /// `plugins_wait` is set.
  virtual void load_for(OperatorSlot& slot) = 0;
  /// Names of backends that were not opened because they are switched off.
  virtual std::vector<std::string> switched_off() const = 0;
};

/// The services that an engine uses. All of them must outlive it.
struct EngineDependencies {
  base::EventLog* log = nullptr;
  health::HealthView* health = nullptr;
  const tune::TuningView* tuning = nullptr;  ///< may be null
  const base::Clock* clock = nullptr;
  const policy::ScopeTable* scopes = nullptr;
  base::ThreadPool* threads = nullptr;  ///< for calls whose caller lends no threads; may be null
  base::Maintenance* maintenance = nullptr;  ///< revived on every slow-path call
  FailureObserver* failures = nullptr;       ///< may be null
  bool disabled = false;
  const TapView* taps = nullptr;               ///< may be null
  std::shared_ptr<PackStore> packs = nullptr;  ///< for instances; null in tests without any
};

/// Counters of one implementation, summed over all threads and bound plans.
struct ImplementationStats {
  std::string id;
  uint64_t calls = 0, declined = 0, failed = 0, resource = 0, invalid_argument = 0, device_lost = 0,
           stood_in = 0, packed_bytes = 0, decided_each_time = 0;
  Attributes instance = {};  ///< of the instance that it packed last
};

/// Compiles registry, policy, lock and selector into one CompiledOperator per operator and
/// publishes the states. Calls never wait: they read the state under a hazard slot (see
/// ThreadBlock). Writers are serialized by `published_`; each builds new states aside, stores them
/// into the OperatorSlots, and gives the old ones to the Reclaimer.
class Engine {
 public:
  explicit Engine(const EngineDependencies& dependencies);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineDependencies& dependencies() const { return dependencies_; }

  /// Sets the loader of deferred plugins. Must be called before a slot's `plugins_wait` is set.
  void attach(PluginLoader& plugins) { plugins_ = &plugins; }
  PluginLoader& plugins() const { return *plugins_; }

  /// The inputs from which operator states are compiled.
  struct Sources {
    registry::RegistrySnapshotPtr registry;
    std::shared_ptr<const policy::PolicySet> policies;
    std::shared_ptr<const LockSet> lock = nullptr;       ///< null: not frozen
    std::shared_ptr<const Selector> selector = nullptr;  ///< null: no selector
  };
  /// The result of publish().
  struct Publication {
    uint64_t generation = 0;
    std::vector<std::shared_ptr<BoundPlanState>> plans;  ///< bound plans to evaluate again
    Reclaimer::Batches finished;                         ///< objects that no call uses any more
  };
  /// Publishes a registry and a policy. Only operators that they change get a new state and epoch.
  /// If only the registry changed, only the changed operators are examined.
  /// The caller serializes its calls, so that older sources never replace newer ones. Throws
  /// std::bad_alloc, and changes nothing, if there is not enough memory.
  Publication publish(const Sources& sources);
  /// Evaluates the bound plans that a publication concerns again, and destroys what it replaced.
  /// Call it once per publication, without locks held, because code of the program runs.
  void finish(Publication& publication) noexcept;
  /// Makes calls decide again before they run a withdrawn implementation, and revokes its bound
  /// plans. Needs no memory; for the case that publish() has none.
  void stop_withdrawn() noexcept;
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  /// The published policy. The state of an operator that the last change did not concern still
  /// holds its part of an older policy with the same effect.
  std::shared_ptr<const policy::PolicySet> policies() const { return policies_.get(); }

  /// Returns the operator with this name, or null. Takes no lock.
  OperatorSlot* find(std::string_view op) const { return names_.find(op); }

  /// A class of calls that was decided outside of scopes, with its decision.
  struct DecidedClass {
    std::shared_ptr<const registry::OperatorRecord> op;
    policy::ClassFacts when;
    registry::ImplementationPtr implementation;
    bool beside_lock;  ///< the lock of a frozen runtime has no entry for this class
    std::vector<registry::ImplementationPtr> order;  ///< accepted candidates, best first
    std::string note;  ///< unmet preference, deviation from the lock, or selector error
    uint64_t generation;
  };
  /// Returns all classes that were decided since the registry, the policies or the health of their
  /// operator changed. If a full table was discarded, its classes are missing.
  std::vector<DecidedClass> decided();

  // The next six functions do not fail. Without memory for new states they mark the operators as
  // outdated: the next call replaces the state before it runs, or returns "resource.memory".

  /// Discards the decisions of every operator that has an implementation on the same device type.
  void health_changed(const registry::ImplementationRecord& implementation) noexcept;
  void device_changed(int32_t type) noexcept;
  /// Discards the decisions of one operator.
  void operator_changed(const std::string& op) noexcept;
  /// Discards the decisions of these operators.
  void operators_changed(const std::set<std::string>& ops) noexcept;
  /// Discards the decisions of every operator that has an implementation of this backend.
  void backend_changed(const registry::Backend& backend) noexcept;
  /// States the rank of the process; see schema::RankFacts. Discards all decisions, so that plans
  /// need not compare it.
  void set_ranks(std::optional<int> rank, std::optional<int> tp_size) noexcept;
  const schema::RankFacts& ranks() const { return ranks_; }
  /// Replaces the state of an operator that is marked as outdated. Does nothing if another thread
  /// is publishing, as try_replace().
  void replace_outdated(OperatorSlot& slot);
  /// Discards the decisions of one operator, to free those under scopes that are no longer used or
  /// to compile longer class keys. The same decisions result again, so bound plans stay as they
  /// are. Does nothing if there is not enough memory.
  void discard_decisions_of(const OperatorSlot& slot);
  /// Discards the decisions of one operator if `state`, which the caller's mark protects, is still
  /// published. Otherwise as discard_decisions_of(), but it does nothing if another thread is
  /// publishing, because calls do not wait: a call from Python may hold the GIL, which the
  /// publishing thread may need. Without `keep_classes`, decided() forgets the classes. Does
  /// nothing if there is not enough memory.
  void try_replace(const OperatorSlot& slot, const CompiledOperator& state, bool keep_classes);

  /// Blocks until no call in flight can use an implementation or bound plan that was unpublished or
  /// revoked before this call. Fails with `failed`: "withdraw.inside" if the calling thread is in
  /// such a call, "withdraw.barrier" if the system refuses to say whether a call is left.
  Status wait_for_retired();

  /// Frees memory: drops all cached prepared states, and frees the workspaces of threads that run
  /// no call. Prepared states that plans of other threads hold are freed with the next call of each
  /// thread.
  void trim();
  /// Starts the job that frees workspaces of idle threads. Called on slow paths; costs one load if
  /// the job exists.
  void watch_workspaces() noexcept;

  void add_plan(const std::shared_ptr<BoundPlanState>& control);

  std::vector<ImplementationStats> stats();

  /// Lets the next calls of each operator that has made calls since the last time be sampled.
  /// `calls_of` returns how many an operator has made so far. Throws std::bad_alloc.
  void sample_calls(const std::function<uint64_t(std::string_view op)>& calls_of);
  /// Starts or ends sampling of all calls of the operators that exist. Starting forgets the cells
  /// of earlier calls. Throws std::bad_alloc.
  void sample_all_calls(bool on);
  /// The cells of an operator in which sampled calls spent their time.
  struct SampledOperator {
    std::shared_ptr<const schema::Schema> schema;
    std::vector<SampledCell> cells;
  };
  std::vector<SampledOperator> sampled_cells();
  size_t retired_waiting();

 private:
  /// The states of implementations, with their ids, by number.
  using States = std::map<uint32_t, std::pair<std::string, std::shared_ptr<ImplementationState>>>;

  /// The last published data and the retired states; accessed under the writer lock.
  struct Published {
    registry::RegistrySnapshotPtr registry;
    std::shared_ptr<const policy::PolicySet> policies;
    std::shared_ptr<const LockSet> lock;
    std::shared_ptr<const Selector> selector;
    uint64_t taps_version = 0;
    struct Op {
      OperatorSlot* slot;
      std::shared_ptr<const registry::OperatorRecord> record;
    };
    std::vector<Op> operators;  ///< in the order in which they were defined
    /// Classes in states that were replaced though their decisions are still right.
    std::map<const OperatorSlot*, std::vector<DecidedClass>> earlier;
    States states;
    std::vector<std::weak_ptr<BoundPlanState>> plans;
    std::vector<std::unique_ptr<OperatorSlot>> slots;
    Reclaimer reclaimer;
  };

  /// The sources of operator states besides the registry.
  struct Settings {
    std::shared_ptr<const policy::PolicySet> policies;
    std::shared_ptr<const LockSet> lock;
    std::shared_ptr<const Selector> selector;
    uint64_t taps_version = 0;
    uint64_t generation = 0;
  };
  Settings settings_of(const Published& published) const;
  Settings settings_of(const Sources& sources) const;
  /// New states of operators. They are compiled before anything changes, because that may fail.
  struct Replacement {
    struct Entry {
      OperatorSlot* slot;
      std::unique_ptr<CompiledOperator> state;
    };
    std::vector<Entry> entries;
    Reclaimer::Batches retired;  ///< with room for the states before

    bool replaces_something() const;
    std::vector<const OperatorSlot*> slots() const;
  };
  /// The changes of a publication, which are made after all of them are known.
  struct Draft;
  /// Adds the operators whose records differ from the published ones.
  void draft_registry(const Published& published, const registry::RegistrySnapshot& registry,
                      Draft& draft);
  void draft_operator(const Published& published,
                      const std::shared_ptr<const registry::OperatorRecord>& record, Draft& draft);
  /// Adds the states that must be compiled again.
  void draft_states(const Published& published, const Settings& settings, Draft& draft);
  void commit(Published& published, const Sources& sources, const Settings& settings,
              Draft& draft) noexcept;

  /// `added` has the states of implementations that are not published yet; may be null.
  std::unique_ptr<CompiledOperator> compile(
      const Published& published, const std::shared_ptr<const registry::OperatorRecord>& record,
      const Settings& settings, const States* added) const;
  void add(const Published& published, const Published::Op& op, Replacement& replacement) const;
  /// Stores the new states and retires those before.
  static void store(Published& published, Replacement replacement) noexcept;

  /// Discards the decisions of the operators that a function chooses.
  void discard_decisions(const std::function<bool(const Published::Op&)>& concerned) noexcept;
  /// Discards the decisions of every operator that has such an implementation.
  void discard_decisions_if(
      const std::function<bool(const registry::ImplementationRecord&)>& concerned) noexcept;
  /// Marks these operators and their bound plans as outdated.
  void outdate(const std::function<bool(const Published::Op&)>& concerned) noexcept;
  /// The part of decided() for one operator.
  static std::vector<DecidedClass> decided_by(const Published& published, const OperatorSlot& slot);
  /// Replaces the state of an operator by one that makes the same decisions; remembers the classes
  /// for decided() unless `forget_classes`.
  void replace_by_equal(Published& published, const Published::Op& op, bool forget_classes);
  /// The objects that no call uses any more. Made before the writer lock is taken, so that the
  /// destructor destroys them after it was released.
  class FinishedObjects {
   public:
    explicit FinishedObjects(Engine& engine) : engine_(engine) {}
    ~FinishedObjects();
    FinishedObjects(const FinishedObjects&) = delete;
    FinishedObjects& operator=(const FinishedObjects&) = delete;
    void take_from(Reclaimer& reclaimer) noexcept { finished_ = reclaimer.take_finished(); }

   private:
    Engine& engine_;
    Reclaimer::Batches finished_;
  };
  void destroy(Reclaimer::Batches finished) noexcept;
  /// Runs `use` under the writer lock. Afterwards destroys the objects that no call uses any more.
  template <class Use>
  auto locked(Use&& use);
  /// The same on the last published data, which a forked child may have lost.
  template <class Use>
  auto with_published(Use&& use);
  void restore(Published& published) const;
  class CollectJob;
  /// Starts the job that frees retired batches when the calls in them end, if there are such
  /// batches. Logs a warning if there are many.
  void collect_later() noexcept;
  /// The same if the number of batches is known.
  void collect_later(size_t batches) noexcept;
  std::vector<std::shared_ptr<BoundPlanState>> live_plans(Published& published);
  /// Those of these operators.
  std::vector<std::shared_ptr<BoundPlanState>> live_plans(Published& published,
                                                          std::vector<const OperatorSlot*> slots);

  /// wait_for_retired(), which throws std::bad_alloc before it waits.
  Status wait_with_memory();

  void after_fork() noexcept;

  const EngineDependencies dependencies_;
  schema::RankFacts ranks_;
  PluginLoader* plugins_ = nullptr;
  std::atomic<uint64_t> generation_{0};
  OperatorNames names_;
  base::Published<policy::PolicySet> policies_;
  base::ForkGuarded<Published> published_;
  PlanList fork_sensitive_;
  std::atomic<bool> collecting_{false}, watching_workspaces_{false};
};

template <class Use>
auto Engine::locked(Use&& use) {
  FinishedObjects finished(*this);
  return published_.with([&](Published& published) {
    struct Take {
      ~Take() { to.take_from(from); }
      FinishedObjects& to;
      Reclaimer& from;
    } const take{finished, published.reclaimer};
    return use(published);
  });
}

template <class Use>
auto Engine::with_published(Use&& use) {
  return locked([&](Published& published) {
    if (published.operators.empty()) restore(published);
    return use(published);
  });
}

}  // namespace opmux::dispatch
