// How an engine publishes: new states are compiled first, then stored by steps that do not fail.
#include <algorithm>
#include <optional>

#include "base/memory.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/bound_plan.hpp"

namespace opmux::dispatch {
namespace {

/// Number of rules for one operator from which the publishing thread compiles them. The first call
/// compiles fewer, which takes less than a millisecond.
constexpr size_t kManyRules = 256;

size_t rule_count(const policy::PolicySet& policies) {
  size_t count = 0;
  for (const policy::PolicyLayerPtr& layer : policies.layers) count += layer->policy().rules.size();
  return count;
}

/// Makes room for more elements, and for at least twice as many as there are.
template <class T>
void reserve_more(std::vector<T>& elements, size_t more) {
  const size_t needed = elements.size() + more;
  if (elements.capacity() < needed) elements.reserve(std::max(needed, 2 * elements.size()));
}

}  // namespace

struct Engine::Draft {
  Draft() = default;
  ~Draft() {
    for (const auto& slot : slots) give_back_slot_number(slot->number);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  std::vector<std::unique_ptr<OperatorSlot>> slots;  ///< of new operators
  std::vector<Published::Op> changed;                ///< operators with another record
  States states;                                     ///< of new implementations
  std::vector<uint32_t> gone;                        ///< numbers of removed implementations
  bool new_policies = false;
  bool new_settings = false;  ///< settings differ that concern every operator
  Replacement replacement;
};

bool Engine::Replacement::replaces_something() const {
  return std::ranges::any_of(entries, [](const Entry& entry) {
    return entry.slot->current.load(std::memory_order_relaxed) != nullptr;
  });
}

std::vector<const OperatorSlot*> Engine::Replacement::slots() const {
  std::vector<const OperatorSlot*> all;
  for (const Entry& entry : entries) all.push_back(entry.slot);
  return all;
}

Engine::Settings Engine::settings_of(const Published& published) const {
  return {policies(), published.lock, published.selector, published.taps_version, generation()};
}

Engine::Settings Engine::settings_of(const Sources& sources) const {
  const uint64_t taps = dependencies_.taps == nullptr ? 0 : dependencies_.taps->version();
  return {sources.policies, sources.lock, sources.selector, taps, generation() + 1};
}

void Engine::draft_operator(const Published& published,
                            const std::shared_ptr<const registry::OperatorRecord>& record,
                            Draft& draft) {
  OperatorSlot* slot = names_.find(record->schema->name);
  const registry::OperatorRecord* known = nullptr;
  if (slot == nullptr) {
    auto made = std::make_unique<OperatorSlot>();
    made->engine = this;
    made->ranks = &ranks_;
    made->schema = record->schema;
    reserve_more(draft.slots, 1);
    made->number = take_slot_number();
    slot = draft.slots.emplace_back(std::move(made)).get();
  } else if (slot->place != OperatorSlot::kNoPlace) {
    known = published.operators[slot->place].record.get();
  }
  if (known == record.get()) return;
  for (const auto& implementation : record->implementations) {
    if (published.states.contains(implementation->number)) continue;
    auto state = std::make_shared<ImplementationState>();
    if (implementation->kernel.plan != nullptr) {
      state->prepared = std::make_shared<PreparedCache>(implementation);
    }
    draft.states.emplace(implementation->number, std::pair(implementation->id, std::move(state)));
  }
  if (known != nullptr) {
    for (const auto& implementation : known->implementations) {
      if (!contains(*record, implementation)) draft.gone.push_back(implementation->number);
    }
  }
  draft.changed.push_back({slot, record});
}

void Engine::draft_registry(const Published& published, const registry::RegistrySnapshot& registry,
                            Draft& draft) {
  const registry::RegistrySnapshotPtr& before = published.registry;
  for_each_difference(
      before == nullptr ? registry::RegistrySnapshot::Operators() : before->operators,
      registry.operators, [&](const auto*, const auto* now) {
        // Operators are never removed.
        if (now != nullptr) draft_operator(published, now->second, draft);
      });
}

void Engine::draft_states(const Published& published, const Settings& settings, Draft& draft) {
  const auto renew = [&](const Published::Op& op) {
    const CompiledOperator* const state = op.slot->current.load(std::memory_order_relaxed);
    const bool same =
        state != nullptr && state->sources().op == op.record &&
        state->sources().lock == settings.lock && state->sources().selector == settings.selector &&
        state->sources().taps_version == settings.taps_version &&
        state->sources().policy_hash == settings.policies->hash_for(op.record->schema->name) &&
        !op.slot->outdated.load(std::memory_order_relaxed);
    if (same) return;
    draft.replacement.entries.push_back(
        {op.slot, compile(published, op.record, settings, &draft.states)});
  };
  for (const Published::Op& op : draft.changed) renew(op);
  std::vector<const OperatorSlot*> done;
  for (const Published::Op& op : draft.changed) done.push_back(op.slot);
  std::ranges::sort(done);
  const auto renew_other = [&](const Published::Op& op) {
    if (!std::ranges::binary_search(done, op.slot)) renew(op);
  };
  std::optional<std::vector<std::string_view>> names;
  if (!draft.new_settings) names = settings.policies->differing(*published.policies);
  if (!names) {
    std::ranges::for_each(published.operators, renew_other);
    return;
  }
  for (const std::string_view name : *names) {
    const OperatorSlot* const slot = names_.find(name);
    if (slot != nullptr && slot->place != OperatorSlot::kNoPlace)
      renew_other(published.operators[slot->place]);
  }
}

std::unique_ptr<CompiledOperator> Engine::compile(
    const Published& published, const std::shared_ptr<const registry::OperatorRecord>& record,
    const Settings& settings, const States* added) const {
  const std::string& name = record->schema->name;
  // Copy only the operator's part, so that an operator without changes does not keep a whole old
  // policy alive.
  auto own = std::make_shared<const policy::PolicySet>(settings.policies->part_for(name));
  const bool many_rules = rule_count(*own) >= kManyRules;
  ImplementationStates states;
  for (const auto& implementation : record->implementations) {
    const auto known = published.states.find(implementation->number);
    states.push_back(known != published.states.end() ? known->second.second
                                                     : added->at(implementation->number).second);
  }
  auto state = std::make_unique<CompiledOperator>(CompileInputs{
      record, std::move(own), settings.policies->hash_for(name), std::move(states),
      settings.generation, dependencies_.health, dependencies_.tuning, dependencies_.disabled,
      settings.lock, settings.selector, dependencies_.taps, settings.taps_version});
  if (many_rules) (void)state->space(0, *dependencies_.scopes);
  return state;
}

void Engine::add(const Published& published, const Published::Op& op,
                 Replacement& replacement) const {
  replacement.entries.push_back(
      {op.slot, compile(published, op.record, settings_of(published), nullptr)});
}

void Engine::store(Published& published, Replacement replacement) noexcept {
  for (Replacement::Entry& entry : replacement.entries) {
    published.earlier.erase(entry.slot);
    entry.slot->outdated.store(false, std::memory_order_release);
    if (auto before = entry.slot->replace(std::move(entry.state)))
      replacement.retired.front().add(std::move(before));
  }
  published.reclaimer.retire(std::move(replacement.retired));
}

void Engine::replace_by_equal(Published& published, const Published::Op& op, bool forget_classes) {
  std::vector<DecidedClass> classes;
  if (!forget_classes) classes = decided_by(published, *op.slot);
  if (classes.size() > ClassTable::kCapacity) classes.resize(ClassTable::kCapacity);
  Replacement replacement;
  add(published, op, replacement);
  replacement.retired = Reclaimer::prepare(1);
  std::map<const OperatorSlot*, std::vector<DecidedClass>> earlier;
  if (!classes.empty()) earlier.emplace(op.slot, std::move(classes));
  store(published, std::move(replacement));
  published.earlier.merge(earlier);
}

void Engine::commit(Published& published, const Sources& sources, const Settings& settings,
                    Draft& draft) noexcept {
  generation_.store(settings.generation, std::memory_order_release);
  published.states.merge(draft.states);
  for (const uint32_t number : draft.gone) published.states.erase(number);
  for (Published::Op& op : draft.changed) {
    if (op.slot->place == OperatorSlot::kNoPlace) {
      op.slot->place = static_cast<uint32_t>(published.operators.size());
      published.operators.push_back({op.slot, nullptr});
    }
    published.operators[op.slot->place].record = std::move(op.record);
  }
  for (std::unique_ptr<OperatorSlot>& slot : draft.slots) {
    names_.insert(slot.get());
    published.slots.push_back(std::move(slot));
  }
  draft.slots.clear();
  published.registry = sources.registry;
  published.policies = settings.policies;
  published.lock = settings.lock;
  published.selector = settings.selector;
  published.taps_version = settings.taps_version;
  store(published, std::move(draft.replacement));
}

Engine::Publication Engine::publish(const Sources& sources) {
  Publication publication;
  published_.with([&](Published& published) {
    if (published.operators.empty()) restore(published);
    const Settings settings = settings_of(sources);
    Draft draft;
    draft.new_policies = published.policies == nullptr || *published.policies != *settings.policies;
    draft.new_settings = published.policies == nullptr || published.lock != settings.lock ||
                         published.selector != settings.selector ||
                         published.taps_version != settings.taps_version;
    draft_registry(published, *sources.registry, draft);
    draft_states(published, settings, draft);
    Replacement& replacement = draft.replacement;
    if (replacement.replaces_something())
      publication.plans = live_plans(published, replacement.slots());
    replacement.retired = Reclaimer::prepare(replacement.entries.size());
    reserve_more(published.operators, draft.changed.size());
    reserve_more(published.slots, draft.slots.size());
    names_.reserve(draft.slots.size());
    // The last step that may fail.
    std::optional<base::Published<policy::PolicySet>::Next> policies;
    if (draft.new_policies) {
      policies.emplace(policies_, std::make_shared<const policy::PolicySet>(*settings.policies));
    }
    if (policies) policies->exchange();
    commit(published, sources, settings, draft);
    publication.generation = settings.generation;
    publication.finished = published.reclaimer.take_finished();
  });
  return publication;
}

void Engine::finish(Publication& publication) noexcept {
  destroy(std::move(publication.finished));
  collect_later();
  for (const auto& plan : publication.plans) {
    // A plan that cannot be evaluated now is evaluated before it runs.
    if (!base::if_memory([&] { plan->reconsider(); })) plan->outdate();
  }
}

}  // namespace opmux::dispatch
