#include "dispatch/engine.hpp"

#include <algorithm>
#include <ctime>
#include <mutex>

#include "dispatch/plan/bound_plan.hpp"
#include "dispatch/plan/cached_plan.hpp"
#include "dispatch/reclaim/idle_workspaces.hpp"

namespace opmux::dispatch {
namespace {

/// Number of waiting retired batches from which publishing logs a warning.
constexpr size_t kManyRetired = 64;

/// Number of rules for one operator from which the publishing thread compiles them. The first call
/// compiles fewer, which takes less than a millisecond.
constexpr size_t kManyRules = 256;

size_t rule_count(const policy::PolicySet& policies) {
  size_t count = 0;
  for (const policy::PolicyLayerPtr& layer : policies.layers) count += layer->policy().rules.size();
  return count;
}

/// Waits between looks at something that a call of unknown length will change: ten microseconds at
/// first, then longer, up to a millisecond.
class Backoff {
 public:
  void wait() {
    const timespec time{0, next_ns_};
    nanosleep(&time, nullptr);
    next_ns_ = std::min(2 * next_ns_, 1'000'000L);
  }

 private:
  long next_ns_ = 10'000;
};

Status not_synchronized() {
  return {Code::failed, "withdraw.barrier",
          "the system refuses both membarrier and sched_setaffinity, so that it is unknown whether "
          "a call is still inside; nothing is freed"};
}

/// Lets go of the prepared states that idle plans of this thread hold. The plans in hazard slots
/// may be running: this is called from the slow path, which may be inside a kernel's call.
void drop_prepared_of_this_thread() {
  const ThreadBlock& block = own_thread_block();
  const auto runs = [&](const CachedPlan& plan) {
    return std::any_of(block.marks, block.marks + kMaxDepth, [&](const auto& mark) {
      return mark.load(std::memory_order_relaxed) == plan.plan_id;
    });
  };
  for (CachedPlan* plan = block.all_plans; plan != nullptr; plan = plan->next_of_thread) {
    if (plan->extras == nullptr || plan->extras->prepared == nullptr || runs(*plan)) continue;
    plan->epoch = 0;
    plan->extras->prepared = nullptr;
  }
}

}  // namespace

Engine::Engine(const EngineDependencies& dependencies) : dependencies_(dependencies) {
  base::at_fork_in_child([](void* self) { static_cast<Engine*>(self)->after_fork(); }, this);
}

Engine::FinishedObjects::~FinishedObjects() {
  if (finished_.batches.empty()) return;
  finished_.items.clear();
  engine_.published_.with(
      [&](Published& published) { published.reclaimer.forget(finished_.batches); });
}

Engine::~Engine() {
  base::forget_fork_handler(this);
  locked([&](Published& published) {
    std::vector<std::unique_ptr<Retired>> retired;
    for (const auto& slot : published.slots) {
      if (auto state = slot->replace(nullptr)) retired.push_back(std::move(state));
      give_back_slot_number(slot->number);
    }
    published.reclaimer.retire(std::move(retired));
  });
}

/// Runs in a forked child: revokes bound plans of lost backends and discards the decisions of
/// operators that have a fork-sensitive backend.
void Engine::after_fork() {
  fork_sensitive_.for_each([](BoundPlanState& plan) {
    if (!plan.implementation->backend->lost_by_fork()) return;
    std::atomic_ref(plan.hot.state)
        .store(static_cast<uint32_t>(PlanState::revoked), std::memory_order_release);
  });
  constexpr uint32_t kSensitive = OPMUX_BACKEND_FORK_LOST | OPMUX_BACKEND_FORK_REINIT;
  names_.for_each([](OperatorSlot& slot) {
    const CompiledOperator* state = slot.current.load(std::memory_order_relaxed);
    if (state == nullptr) return;
    for (const auto& implementation : state->sources().op->implementations) {
      if ((implementation->backend->flags() & kSensitive) == 0) continue;
      // Leak the old state, because the forking thread may be inside a call that uses it.
      (void)slot.replace(std::make_unique<CompiledOperator>(state->sources())).release();
      return;
    }
  });
}

OperatorSlot* Engine::slot_for(Published& published,
                               const std::shared_ptr<const schema::Schema>& schema) {
  if (OperatorSlot* known = names_.find(schema->name)) return known;
  auto slot = std::make_unique<OperatorSlot>();
  slot->number = take_slot_number();
  slot->engine = this;
  slot->schema = schema;
  published.slots.push_back(std::move(slot));
  names_.insert(published.slots.back().get());
  return published.slots.back().get();
}

bool Engine::adopt(Published& published,
                   const std::shared_ptr<const registry::OperatorRecord>& record) {
  OperatorSlot* const slot = slot_for(published, record->schema);
  if (slot->place == OperatorSlot::kNoPlace) {
    slot->place = static_cast<uint32_t>(published.operators.size());
    published.operators.push_back({slot, nullptr});
  }
  auto& known = published.operators[slot->place].record;
  if (known == record) return false;
  for (const auto& implementation : record->implementations) {
    if (published.states.contains(implementation->number)) continue;
    auto state = std::make_shared<ImplementationState>();
    if (implementation->kernel.plan != nullptr) {
      state->prepared = std::make_shared<PreparedCache>(implementation);
    }
    published.states.emplace(implementation->number,
                             std::pair(implementation->id, std::move(state)));
  }
  if (known != nullptr) {
    for (const auto& implementation : known->implementations) {
      if (!contains(*record, implementation)) published.states.erase(implementation->number);
    }
  }
  known = record;
  return true;
}

std::vector<uint32_t> Engine::adopt(Published& published,
                                    const registry::RegistrySnapshotPtr& registry) {
  std::vector<uint32_t> changed;
  const registry::RegistrySnapshotPtr before = std::exchange(published.registry, registry);
  for_each_difference(
      before == nullptr ? registry::RegistrySnapshot::Operators() : before->operators,
      registry->operators, [&](const auto*, const auto* now) {
        // Operators are never removed.
        if (now == nullptr || !adopt(published, now->second)) return;
        changed.push_back(names_.find(now->first)->place);
      });
  return changed;
}

bool Engine::adopt_settings(Published& published, const Sources& sources) {
  const uint64_t taps = dependencies_.taps == nullptr ? 0 : dependencies_.taps->version();
  const bool same_policies =
      published.policies != nullptr && *published.policies == *sources.policies;
  if (!same_policies) {
    policies_.update([&](policy::PolicySet& set) {
      set = *sources.policies;
      return true;
    });
  }
  const bool same = same_policies && published.lock == sources.lock &&
                    published.selector == sources.selector && published.taps_version == taps;
  published.policies = sources.policies;
  published.lock = sources.lock;
  published.selector = sources.selector;
  published.taps_version = taps;
  return !same;
}

ImplementationStates Engine::states_of(Published& published, const registry::OperatorRecord& op) {
  ImplementationStates states;
  for (const auto& implementation : op.implementations) {
    states.push_back(published.states.at(implementation->number).second);
  }
  return states;
}

std::unique_ptr<CompiledOperator> Engine::compile(Published& published, const Published::Op& op) {
  const std::shared_ptr<const policy::PolicySet> all = policies();
  const std::string& name = op.record->schema->name;
  // Copy only the operator's part, so that an operator without changes does not keep a whole old
  // policy alive.
  auto own = std::make_shared<const policy::PolicySet>(all->part_for(name));
  const bool many_rules = rule_count(*own) >= kManyRules;
  auto state = std::make_unique<CompiledOperator>(CompileInputs{
      op.record, std::move(own), all->hash_for(name), states_of(published, *op.record),
      generation(), dependencies_.health, dependencies_.tuning, dependencies_.disabled,
      published.lock, published.selector, dependencies_.taps, published.taps_version});
  if (many_rules) (void)state->space(0, *dependencies_.scopes);
  return state;
}

void Engine::replace(Published& published, const Published::Op& op,
                     std::vector<std::unique_ptr<Retired>>& retired) {
  published.earlier.erase(op.slot);
  if (auto before = op.slot->replace(compile(published, op))) retired.push_back(std::move(before));
}

void Engine::replace_by_equal(Published& published, const Published::Op& op,
                              std::vector<std::unique_ptr<Retired>>& retired) {
  std::vector<DecidedClass> classes = decided_by(published, *op.slot);
  if (classes.size() > ClassTable::kCapacity) classes.resize(ClassTable::kCapacity);
  replace(published, op, retired);
  if (!classes.empty()) published.earlier[op.slot] = std::move(classes);
}

/// Rebuilds `published` from the operator states. Needed in a child that was forked while a thread
/// was changing it, because ForkGuarded starts empty there. The states are always consistent and
/// hold all their inputs.
void Engine::restore(Published& published) const {
  uint64_t newest = 0;
  names_.for_each([&](OperatorSlot& slot) {
    slot.place = OperatorSlot::kNoPlace;
    const CompiledOperator* state = slot.current.load(std::memory_order_acquire);
    if (state == nullptr) return;
    const CompileInputs& sources = state->sources();
    slot.place = static_cast<uint32_t>(published.operators.size());
    published.operators.push_back({&slot, sources.op});
    for (size_t i = 0; i < sources.states.size(); ++i) {
      const registry::ImplementationRecord& implementation = *sources.op->implementations[i];
      published.states[implementation.number] = {implementation.id, sources.states[i]};
    }
    if (sources.generation < newest) return;
    newest = sources.generation;
    published.lock = sources.lock;
    published.selector = sources.selector;
    published.taps_version = sources.taps_version;
  });
}

/// Frees retired states once a second, because it may be long until the next publication.
class Engine::CollectJob final : public base::Maintenance::Job {
 public:
  explicit CollectJob(Engine& engine) : engine_(engine) {}
  uint64_t run(uint64_t now_ns) override {
    constexpr uint64_t kEveryNs = 1'000'000'000;
    (void)engine_.retired_waiting();
    return now_ns + kEveryNs;
  }

 private:
  Engine& engine_;
};

void Engine::collect_later() {
  collect_later(
      published_.with([&](Published& published) { return published.reclaimer.waiting(); }));
}

void Engine::collect_later(size_t batches) {
  if (batches > 0 && !collecting_.exchange(true)) {
    dependencies_.maintenance->add([this] { return std::make_unique<CollectJob>(*this); });
  }
  if (batches < kManyRetired) return;
  dependencies_.log->tell(Level::warning, "dispatch.retired_waiting", "", "", "", [&] {
    size_t marks = 0;
    const bool synchronized = published_.with([&](Published& published) {
      marks = published.reclaimer.blockers().size();
      return published.reclaimer.synchronized();
    });
    if (!synchronized) {
      return std::to_string(batches) + " retired snapshots cannot be freed because the system " +
             "refuses both membarrier and sched_setaffinity";
    }
    return std::to_string(batches) + " retired snapshots cannot be freed because " +
           std::to_string(marks) + " calls that may use them have not returned";
  });
}

void Engine::renew(Published& published, const Published::Op& op,
                   std::vector<std::unique_ptr<Retired>>& retired,
                   std::vector<const OperatorSlot*>& replaced) {
  const CompiledOperator* const state = op.slot->current.load(std::memory_order_relaxed);
  const bool same =
      state != nullptr && state->sources().op == op.record &&
      state->sources().lock == published.lock && state->sources().selector == published.selector &&
      state->sources().taps_version == published.taps_version &&
      state->sources().policy_hash == published.policies->hash_for(op.record->schema->name);
  if (same) return;
  replace(published, op, retired);
  replaced.push_back(op.slot);
}

Engine::Publication Engine::publish(Sources sources) {
  return with_published([&](Published& published) {
    Publication publication;
    publication.generation = generation_.fetch_add(1, std::memory_order_acq_rel) + 1;
    const std::vector<uint32_t> changed = adopt(published, sources.registry);
    std::vector<std::unique_ptr<Retired>> retired;
    std::vector<const OperatorSlot*> replaced;
    if (adopt_settings(published, sources)) {
      for (const Published::Op& op : published.operators) renew(published, op, retired, replaced);
    } else {
      for (const uint32_t place : changed) {
        renew(published, published.operators[place], retired, replaced);
      }
    }
    if (!retired.empty()) publication.plans = live_plans(published, std::move(replaced));
    published.reclaimer.retire(std::move(retired));
    return publication;
  });
}

void Engine::finish(const Publication& publication) {
  collect_later();
  for (const auto& plan : publication.plans) plan->reconsider();
}

void Engine::discard_decisions(
    const std::function<std::vector<uint32_t>(const Published&)>& choose_places) {
  // Declared first, because destroying a bound plan's state may call vendor code, which must not
  // happen under a lock.
  std::vector<std::shared_ptr<BoundPlanState>> plans;
  with_published([&](Published& published) {
    std::vector<std::unique_ptr<Retired>> retired;
    std::vector<const OperatorSlot*> replaced;
    for (const uint32_t place : choose_places(published)) {
      replace(published, published.operators[place], retired);
      replaced.push_back(published.operators[place].slot);
    }
    if (!replaced.empty()) plans = live_plans(published, std::move(replaced));
    published.reclaimer.retire(std::move(retired));
  });
  collect_later();
  // The thread that calls this may be that of a call which failed, so it does not evaluate the
  // plans.
  for (const auto& plan : plans) plan->outdate();
}

void Engine::discard_decisions_if(
    const std::function<bool(const registry::ImplementationRecord&)>& concerned) {
  discard_decisions([&](const Published& published) {
    std::vector<uint32_t> places;
    for (const Published::Op& op : published.operators) {
      const bool any = std::ranges::any_of(op.record->implementations,
                                           [&](const auto& one) { return concerned(*one); });
      if (any) places.push_back(op.slot->place);
    }
    return places;
  });
}

void Engine::backend_changed(const registry::Backend& backend) {
  discard_decisions_if([&](const auto& one) { return one.backend.get() == &backend; });
}

void Engine::health_changed(const registry::ImplementationRecord& implementation) {
  const int32_t type = implementation.backend->device_type();
  discard_decisions_if([&](const auto& one) { return one.backend->device_type() == type; });
}

void Engine::operator_changed(const std::string& op) {
  const OperatorSlot* const slot = names_.find(op);
  if (slot == nullptr) return;
  discard_decisions([&](const Published& published) {
    return slot->place < published.operators.size() ? std::vector{slot->place}
                                                    : std::vector<uint32_t>();
  });
}

void Engine::discard_decisions_of(const OperatorSlot& slot) {
  with_published([&](Published& published) {
    std::vector<std::unique_ptr<Retired>> retired;
    if (slot.place < published.operators.size()) {
      replace_by_equal(published, published.operators[slot.place], retired);
    }
    published.reclaimer.retire(std::move(retired));
  });
  collect_later();
}

void Engine::try_replace(const OperatorSlot& slot, const CompiledOperator& state,
                         bool keep_classes) {
  size_t batches = 0;
  FinishedObjects finished(*this);
  published_.try_with([&](Published& published) {
    if (published.operators.empty()) restore(published);
    std::vector<std::unique_ptr<Retired>> retired;
    const bool present = slot.place < published.operators.size();
    if (present && slot.current.load(std::memory_order_relaxed) == &state) {
      const Published::Op& op = published.operators[slot.place];
      if (keep_classes) {
        replace_by_equal(published, op, retired);
      } else {
        replace(published, op, retired);
      }
    }
    published.reclaimer.retire(std::move(retired));
    finished.take_from(published.reclaimer);
    batches = published.reclaimer.waiting();
  });
  collect_later(batches);
}

std::vector<std::shared_ptr<BoundPlanState>> Engine::live_plans(Published& published) {
  std::vector<std::shared_ptr<BoundPlanState>> live;
  for (const auto& weak : published.plans) {
    if (auto plan = weak.lock()) live.push_back(std::move(plan));
  }
  published.plans.assign(live.begin(), live.end());
  return live;
}

std::vector<std::shared_ptr<BoundPlanState>> Engine::live_plans(
    Published& published, std::vector<const OperatorSlot*> slots) {
  std::ranges::sort(slots);
  std::vector<std::shared_ptr<BoundPlanState>> live = live_plans(published);
  std::erase_if(live,
                [&](const auto& plan) { return !std::ranges::binary_search(slots, plan->slot); });
  return live;
}

void Engine::add_plan(const std::shared_ptr<BoundPlanState>& control) {
  if ((control->implementation->backend->flags() & OPMUX_BACKEND_FORK_LOST) != 0) {
    control->place = &fork_sensitive_.enter(control.get());
  }
  published_.with([&](Published& published) {
    if (published.plans.size() % 64 == 0) live_plans(published);
    published.plans.push_back(control);
  });
}

void Engine::trim() {
  with_published([&](Published& published) {
    for (const Published::Op& op : published.operators) {
      bool any = false;
      for (const auto& implementation : op.record->implementations) {
        auto& cache = published.states.at(implementation->number).second->prepared;
        any |= cache != nullptr && cache->trim();
      }
      CompiledOperator* const state = op.slot->current.load(std::memory_order_acquire);
      if (!any || state == nullptr) continue;
      // With a new epoch the next call of each thread replaces its plan, which holds a state.
      const uint64_t epoch = next_epoch();
      state->set_epoch(epoch);
      op.slot->epoch.store(epoch, std::memory_order_release);
    }
  });
  drop_prepared_of_this_thread();
  free_idle_workspaces();
}

void Engine::watch_workspaces() {
  if (watching_workspaces_.load(std::memory_order_relaxed)) return;
  if (watching_workspaces_.exchange(true)) return;
  dependencies_.maintenance->add([] { return std::make_unique<IdleWorkspaceJob>(); });
}

Status Engine::wait_for_retired() {
  std::vector<uint64_t> revoked;
  uint64_t newest = 0;
  published_.with([&](Published& published) {
    for (const auto& plan : live_plans(published)) {
      if (plan->revoked()) revoked.push_back(plan->plan_id);
    }
    newest = published.reclaimer.newest();
  });
  const auto is_revoked = [&](uint64_t plan_id) {
    return std::ranges::find(revoked, plan_id) != revoked.end();
  };
  if (!synchronize_all_threads()) return not_synchronized();
  std::vector<Blocker> inside = marks_in_flight(is_revoked);
  for (Backoff backoff;; backoff.wait()) {
    Status status;
    const bool waits = locked([&](Published& published) {
      published.reclaimer.collect();
      status = check_not_inside(published.reclaimer.blockers());
      if (!published.reclaimer.synchronized()) status = not_synchronized();
      return published.reclaimer.waits_for(newest);
    });
    drop_finished(inside, is_revoked);
    if (!waits && inside.empty()) return {};
    if (status.ok()) status = check_not_inside(inside);
    if (!status.ok()) return status;
  }
}

size_t Engine::retired_waiting() {
  return locked([](Published& published) {
    published.reclaimer.collect();
    return published.reclaimer.waiting();
  });
}

}  // namespace opmux::dispatch
