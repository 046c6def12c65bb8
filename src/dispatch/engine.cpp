#include "dispatch/engine.hpp"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <optional>

#include "base/memory.hpp"
#include "dispatch/plan/bound_plan.hpp"
#include "dispatch/plan/cached_plan.hpp"
#include "dispatch/reclaim/idle_workspaces.hpp"

namespace opmux::dispatch {
namespace {

/// Number of waiting retired batches from which publishing logs a warning.
constexpr size_t kManyRetired = 64;

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

Engine::FinishedObjects::~FinishedObjects() { engine_.destroy(std::move(finished_)); }

void Engine::destroy(Reclaimer::Batches finished) noexcept {
  if (finished.empty()) return;
  for (Reclaimer::Batch& batch : finished) batch.clear();
  published_.with([&](Published& published) { published.reclaimer.forget(finished); });
}

Engine::~Engine() {
  base::forget_fork_handler(this);
  // One at a time, because there may be no memory for a list of them. The lock is free while a
  // state is destroyed.
  bool left = true;
  for (size_t i = 0; left; ++i) {
    std::unique_ptr<CompiledOperator> state;
    published_.with([&](Published& published) {
      left = i < published.slots.size();
      if (!left) return;
      state = published.slots[i]->replace(nullptr);
      give_back_slot_number(published.slots[i]->number);
    });
  }
}

/// Runs in a forked child: revokes bound plans of lost backends and discards the decisions of
/// operators that have a fork-sensitive backend.
void Engine::after_fork() noexcept {
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
      const bool replaced = base::if_memory([&] {
        (void)slot.replace(std::make_unique<CompiledOperator>(state->sources())).release();
      });
      if (!replaced) {
        slot.outdated.store(true, std::memory_order_release);
        slot.renew_epoch();
      }
      return;
    }
  });
}

/// Rebuilds `published` from the operator states. Needed in a child that was forked while a thread
/// was changing it, because ForkGuarded starts empty there. The states are always consistent and
/// hold all their inputs.
void Engine::restore(Published& published) const {
  Published found;
  uint64_t newest = 0;
  names_.for_each([&](OperatorSlot& slot) {
    const CompiledOperator* state = slot.current.load(std::memory_order_acquire);
    if (state == nullptr) return;
    const CompileInputs& sources = state->sources();
    found.operators.push_back({&slot, sources.op});
    for (size_t i = 0; i < sources.states.size(); ++i) {
      const registry::ImplementationRecord& implementation = *sources.op->implementations[i];
      found.states[implementation.number] = {implementation.id, sources.states[i]};
    }
    if (sources.generation < newest) return;
    newest = sources.generation;
    found.lock = sources.lock;
    found.selector = sources.selector;
    found.taps_version = sources.taps_version;
  });
  names_.for_each([](OperatorSlot& slot) { slot.place = OperatorSlot::kNoPlace; });
  for (uint32_t place = 0; place < found.operators.size(); ++place) {
    found.operators[place].slot->place = place;
  }
  published.operators = std::move(found.operators);
  published.states = std::move(found.states);
  published.lock = std::move(found.lock);
  published.selector = std::move(found.selector);
  published.taps_version = found.taps_version;
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

void Engine::collect_later() noexcept {
  collect_later(
      published_.with([&](Published& published) { return published.reclaimer.waiting(); }));
}

void Engine::collect_later(size_t batches) noexcept {
  if (batches > 0 && !collecting_.exchange(true)) {
    const bool added = base::if_memory([&] {
      dependencies_.maintenance->add([this] { return std::make_unique<CollectJob>(*this); });
    });
    if (!added) collecting_.store(false);  // the next publication tries again
  }
  if (batches < kManyRetired) return;
  dependencies_.log->tell(Level::warning, "dispatch.retired_waiting", "", "", "", [&] {
    size_t marks = 0;
    const bool synchronized = published_.with([&](Published& published) {
      marks = published.reclaimer.blocker_count();
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

void Engine::discard_decisions(
    const std::function<bool(const Published::Op&)>& concerned) noexcept {
  // Declared first, because destroying a bound plan's state may call vendor code, which must not
  // happen under a lock.
  std::vector<std::shared_ptr<BoundPlanState>> plans;
  const bool replaced = base::if_memory([&] {
    with_published([&](Published& published) {
      Replacement replacement;
      for (const Published::Op& op : published.operators) {
        if (concerned(op)) add(published, op, replacement);
      }
      if (replacement.entries.empty()) return;
      replacement.retired = Reclaimer::prepare(replacement.entries.size());
      plans = live_plans(published, replacement.slots());
      store(published, std::move(replacement));
    });
  });
  if (!replaced) outdate(concerned);
  collect_later();
  // The thread that calls this may be that of a call which failed, so it does not evaluate the
  // plans.
  for (const auto& plan : plans) plan->outdate();
}

void Engine::outdate(const std::function<bool(const Published::Op&)>& concerned) noexcept {
  published_.with([&](Published& published) {
    for (const Published::Op& op : published.operators) {
      if (!concerned(op)) continue;
      op.slot->outdated.store(true, std::memory_order_release);
      op.slot->renew_epoch();
    }
    for (const auto& weak : published.plans) {
      const auto plan = weak.lock();
      if (plan != nullptr && plan->slot->outdated.load(std::memory_order_relaxed)) plan->outdate();
    }
  });
}

void Engine::stop_withdrawn() noexcept {
  outdate([](const Published::Op& op) {
    return std::ranges::any_of(op.record->implementations, [](const auto& one) {
      return one->withdrawn.load(std::memory_order_acquire);
    });
  });
}

void Engine::discard_decisions_if(
    const std::function<bool(const registry::ImplementationRecord&)>& concerned) noexcept {
  discard_decisions([&](const Published::Op& op) {
    return std::ranges::any_of(op.record->implementations,
                               [&](const auto& one) { return concerned(*one); });
  });
}

void Engine::backend_changed(const registry::Backend& backend) noexcept {
  discard_decisions_if([&](const auto& one) { return one.backend.get() == &backend; });
}

void Engine::health_changed(const registry::ImplementationRecord& implementation) noexcept {
  device_changed(implementation.backend->device_type());
}

void Engine::device_changed(int32_t type) noexcept {
  discard_decisions_if([&](const auto& one) {
    return one.backend->device_type() == type || one.capability.device_type == type;
  });
}

void Engine::set_ranks(std::optional<int> rank, std::optional<int> tp_size) noexcept {
  // First the facts: a decision in a new state must not read those before.
  ranks_.set(rank, tp_size);
  discard_decisions([](const Published::Op&) { return true; });
}

void Engine::operator_changed(const std::string& op) noexcept {
  const OperatorSlot* const slot = names_.find(op);
  if (slot == nullptr) return;
  discard_decisions([&](const Published::Op& one) { return one.slot == slot; });
}

void Engine::operators_changed(const std::set<std::string>& ops) noexcept {
  discard_decisions([&](const Published::Op& one) { return ops.contains(one.slot->name()); });
}

void Engine::discard_decisions_of(const OperatorSlot& slot) {
  base::if_memory([&] {
    with_published([&](Published& published) {
      if (slot.place < published.operators.size())
        replace_by_equal(published, published.operators[slot.place], false);
    });
  });
  collect_later();
}

void Engine::try_replace(const OperatorSlot& slot, const CompiledOperator& state,
                         bool keep_classes) {
  size_t batches = 0;
  FinishedObjects finished(*this);
  base::if_memory([&] {
    published_.try_with([&](Published& published) {
      if (published.operators.empty()) restore(published);
      const bool present = slot.place < published.operators.size();
      if (present && slot.current.load(std::memory_order_relaxed) == &state)
        replace_by_equal(published, published.operators[slot.place], !keep_classes);
      published.reclaimer.collect();
      finished.take_from(published.reclaimer);
      batches = published.reclaimer.waiting();
    });
  });
  collect_later(batches);
}

void Engine::replace_outdated(OperatorSlot& slot) {
  FinishedObjects finished(*this);
  published_.try_with([&](Published& published) {
    if (published.operators.empty()) restore(published);
    if (!slot.outdated.load(std::memory_order_relaxed)) return;
    if (slot.place >= published.operators.size()) return;
    replace_by_equal(published, published.operators[slot.place], true);
    finished.take_from(published.reclaimer);
  });
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
      // With a new epoch the next call of each thread replaces its plan, which holds a state.
      if (any) op.slot->renew_epoch();
    }
  });
  drop_prepared_of_this_thread();
  free_idle_workspaces();
}

void Engine::watch_workspaces() noexcept {
  if (watching_workspaces_.load(std::memory_order_relaxed)) return;
  if (watching_workspaces_.exchange(true)) return;
  const bool added = base::if_memory(
      [&] { dependencies_.maintenance->add([] { return std::make_unique<IdleWorkspaceJob>(); }); });
  if (!added) watching_workspaces_.store(false);
}

Status Engine::wait_for_retired() {
  Status status;
  if (base::if_memory([&] { status = wait_with_memory(); })) return status;
  if (!wait_for_all_calls()) return waits_for_itself();
  (void)retired_waiting();
  return {};
}

Status Engine::wait_with_memory() {
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
    bool own = false, synchronized = false;
    const bool waits = locked([&](Published& published) {
      published.reclaimer.collect();
      own = published.reclaimer.blocked_by_this_thread();
      synchronized = published.reclaimer.synchronized();
      return published.reclaimer.waits_for(newest);
    });
    drop_finished(inside, is_revoked);
    if (!waits && inside.empty()) return {};
    if (!synchronized) return not_synchronized();
    if (own) return waits_for_itself();
    if (Status status = check_not_inside(inside); !status.ok()) return status;
  }
}

size_t Engine::retired_waiting() {
  return locked([](Published& published) {
    published.reclaimer.collect();
    return published.reclaimer.waiting();
  });
}

}  // namespace opmux::dispatch
