// The decisions and counters that an engine reports.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>

#include "dispatch/engine.hpp"
#include "dispatch/plan/bound_plan.hpp"
#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {
namespace {

/// The classes that a state decided outside of scopes. `state` may be null.
std::vector<Engine::DecidedClass> decided_by(const CompiledOperator* state) {
  std::vector<Engine::DecidedClass> all;
  const DecisionCache* space = state == nullptr ? nullptr : state->unscoped();
  if (space == nullptr) return all;
  space->for_each_class([&](policy::ClassFacts facts, const Decision& choice) {
    if (choice.plans.empty()) return;
    // Report the winner by policy, not its fallback while a breaker is open.
    const CandidateParts* const chosen =
        choice.rests != nullptr ? choice.rests : choice.plans.front().candidate;
    std::vector<registry::ImplementationPtr> order;
    for (const RankedCandidate& plan : choice.plans)
      order.push_back(plan.candidate->implementation);
    const std::string& note = choice.deviation.empty() ? choice.preference_unmet : choice.deviation;
    all.push_back({state->sources().op, std::move(facts), chosen->implementation,
                   choice.beside_lock, std::move(order),
                   note.empty() ? choice.selector_problem : note, choice.generation});
  });
  return all;
}

}  // namespace

std::vector<Engine::DecidedClass> Engine::decided_by(const Published& published,
                                                     const OperatorSlot& slot) {
  auto all = dispatch::decided_by(slot.current.load(std::memory_order_acquire));
  const auto earlier = published.earlier.find(&slot);
  if (earlier == published.earlier.end()) return all;
  std::set<std::string> known;
  const auto is_new = [&](const DecidedClass& each) {
    return known.insert(policy::to_string(*each.op->schema, each.when)).second;
  };
  for (const DecidedClass& each : all) is_new(each);
  std::ranges::copy_if(earlier->second, std::back_inserter(all), is_new);
  return all;
}

std::vector<Engine::DecidedClass> Engine::decided() {
  return with_published([](Published& published) {
    std::vector<const OperatorSlot*> slots;
    for (const Published::Op& op : published.operators) slots.push_back(op.slot);
    std::ranges::sort(slots, {}, &OperatorSlot::name);
    std::vector<DecidedClass> all;
    for (const OperatorSlot* const slot : slots) {
      std::ranges::move(decided_by(published, *slot), std::back_inserter(all));
    }
    return all;
  });
}

namespace {

/// Adds the calls that a thread counted to `calls_elsewhere` of their implementations. The caller
/// holds the lock of ThreadList, so that the block and its plans stay alive.
void add_thread_counts(ThreadBlock& block) {
  const std::lock_guard lock(block.counting);
  for (const KeptCount& kept : block.kept_counts) {
    if (const auto owner = kept.owner.lock()) owner->calls_elsewhere += kept.calls;
  }
  block.counts.for_each([](const PlanCount& count) {
    if (count.counters != nullptr) count.counters->calls_elsewhere += count.all();
  });
}

}  // namespace

std::vector<ImplementationStats> Engine::stats() {
  // Declared first, because destroying a bound plan's state may call vendor code, which must not
  // happen under a lock.
  std::vector<std::shared_ptr<BoundPlanState>> plans;
  std::vector<ImplementationStats> all;
  with_published([&](Published& published) {
    plans = live_plans(published);
    for (const auto& [number, named] : published.states) all.push_back({.id = named.first});
    // No count moves while this lock is held, so each call is found in exactly one place, and no
    // sum is smaller than in an earlier result.
    const auto lock = ThreadList::instance().lock();
    for (const auto& [number, named] : published.states)
      named.second->counters->calls_elsewhere = 0;
    ThreadList::instance().visit_locked(add_thread_counts);
    for (const auto& plan : plans) {
      if (plan->counts_for != nullptr) plan->counts_for->calls_elsewhere += plan->hot.load_calls();
    }
    auto next = all.begin();
    for (const auto& [number, named] : published.states) {
      const ImplementationCounters& c = *named.second->counters;
      const auto load = [](const std::atomic<uint64_t>& n) {
        return n.load(std::memory_order_relaxed);
      };
      next->calls = load(c.calls) + c.calls_elsewhere;
      next->declined = load(c.declined);
      next->failed = load(c.failed);
      next->resource = load(c.resource);
      next->invalid_argument = load(c.invalid_argument);
      next->device_lost = load(c.device_lost);
      next->stood_in = load(c.stood_in);
      next->packed_bytes = load(c.packed_bytes);
      next->decided_each_time = load(c.decided_each_time);
      next->instance =
          named.second->counters->instance.with([](const Attributes& newest) { return newest; });
      ++next;
    }
  });
  std::ranges::sort(all, {}, &ImplementationStats::id);
  return all;
}

void Engine::sample_calls(const std::function<uint64_t(std::string_view op)>& calls_of) {
  with_published([&](Published& published) {
    for (const Published::Op& op : published.operators) {
      // With a new epoch the next calls of each thread take the slow path.
      if (op.slot->sampling.open(calls_of(op.slot->name()))) op.slot->renew_epoch();
    }
  });
}

void Engine::sample_all_calls(bool on) {
  with_published([&](Published& published) {
    for (const Published::Op& op : published.operators) {
      if (!on) {
        op.slot->sampling.close();
      } else {
        op.slot->sampling.open_for_all();
        op.slot->renew_epoch();
      }
    }
  });
}

std::vector<Engine::SampledOperator> Engine::sampled_cells() {
  return with_published([](Published& published) {
    std::vector<SampledOperator> all;
    for (const Published::Op& op : published.operators) {
      std::vector<SampledCell> cells = op.slot->sampling.cells();
      if (!cells.empty()) all.push_back({op.slot->schema, std::move(cells)});
    }
    return all;
  });
}

}  // namespace opmux::dispatch
