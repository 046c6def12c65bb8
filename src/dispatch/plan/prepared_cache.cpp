#include "dispatch/plan/prepared_cache.hpp"

#include <bit>
#include <utility>

#include "base/memory.hpp"
#include "base/status.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/plan/exact_words.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {

void PreparedState::free() const {
  uint64_t nobody = 0;
  const uint64_t process = base::process_number();
  if (freed_by_.compare_exchange_strong(nobody, process, std::memory_order_acq_rel)) {
    const registry::Kernel& kernel = implementation_->kernel;
    if (kernel.plan_free != nullptr) kernel.plan_free(kernel.user_data, state_);
    freed_.store(1, std::memory_order_release);
    freed_.notify_all();
  } else if (nobody == process) {
    freed_.wait(0, std::memory_order_acquire);
  }
}

PreparedCache::~PreparedCache() {
  const auto alive = entries_.with([](Entries& entries) { return std::move(entries.alive); });
  for (const auto& weak : alive) {
    if (const PreparedPtr state = weak.lock()) state->free();
  }
}

void PreparedCache::note_alive(const PreparedPtr& state) {
  entries_.with([&](Entries& entries) {
    if (entries.alive.size() == entries.alive.capacity()) {
      std::erase_if(entries.alive, [](const auto& weak) { return weak.expired(); });
    }
    entries.alive.push_back(state);
  });
}

namespace {

/// The value of a fact, and the bits of a float: unlike a decision, plan() may depend on the sign
/// of zero.
int64_t planned_value(const schema::Signature& signature, schema::Fact fact) {
  const schema::Arguments& arguments = *signature.arguments;
  const bool real =
      fact.kind == schema::FactKind::scalar && arguments.tags[fact.index] == ArgTag::floating;
  return real ? std::bit_cast<int64_t>(arguments.values[fact.index]) : value_of(signature, fact);
}

}  // namespace

PreparedKey prepared_key(const registry::ImplementationRecord& implementation,
                         const schema::Signature& signature, const opmux_call& call) {
  PreparedKey key;
  key.facts.push_back(call.max_threads);
  key.facts.push_back(call.instance != nullptr ? 1 : 0);
  if (implementation.plan_reads) {
    for (const schema::Fact& fact : *implementation.plan_reads) {
      key.facts.push_back(planned_value(signature, fact));
    }
  } else {
    key.facts.push_back(static_cast<int64_t>(call.tag));
    key.facts.push_back(call.parallel_for != nullptr ? 1 : 0);
    exact_words(*signature.arguments, [&](int64_t word) { key.facts.push_back(word); });
  }
  if (implementation.has(OPMUX_IMPL_SERIAL)) {
    key.facts.push_back(static_cast<int64_t>(own_thread_block().number));
  }
  return key;
}

size_t PreparedCache::KeyHash::operator()(const PreparedKey& key) const {
  uint64_t hash = key.facts.size();
  for (const int64_t fact : key.facts) {
    hash = (hash ^ static_cast<uint64_t>(fact)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

std::pair<std::shared_ptr<PreparedCache::Slot>, bool> PreparedCache::claim(const PreparedKey& key) {
  std::shared_ptr<Slot> evicted;  // destroyed after the lock, because that may call plan_free()
  return entries_.with([&](Entries& entries) -> std::pair<std::shared_ptr<Slot>, bool> {
    const auto found = entries.by_key.find(key);
    if (found != entries.by_key.end()) {
      entries.by_age.splice(entries.by_age.begin(), entries.by_age, found->second.age);
      const std::shared_ptr<Slot>& slot = found->second.slot;
      const bool orphaned = slot->done.load(std::memory_order_acquire) == 0 &&
                            slot->process != base::process_number();
      if (!orphaned) return {slot, false};
      slot->process = base::process_number();
      return {slot, true};
    }
    if (entries.by_key.size() >= kCapacity) {
      const auto oldest = entries.by_key.find(entries.by_age.back());
      evicted = std::move(oldest->second.slot);
      entries.by_key.erase(oldest);
      entries.by_age.pop_back();
    }
    auto slot = std::make_shared<Slot>();
    slot->process = base::process_number();
    std::list<PreparedKey> age{key};
    entries.by_key.emplace(key, Entry{slot, age.begin()});
    entries.by_age.splice(entries.by_age.begin(), age);
    return {slot, true};
  });
}

void PreparedCache::forget(const PreparedKey& key) {
  entries_.with([&](Entries& entries) {
    const auto found = entries.by_key.find(key);
    if (found == entries.by_key.end()) return;
    entries.by_age.erase(found->second.age);
    entries.by_key.erase(found);
  });
}

void PreparedCache::build(Slot& slot, const opmux_call& call) {
  base::ErrorSink sink;
  opmux_call with_sink = call;
  with_sink.error = sink.c();
  void* state = nullptr;
  const registry::Kernel& kernel = implementation_->kernel;
  const int32_t outcome = [&] {
    const PreparationGuard inside(*implementation_, crash::Phase::plan);
    return kernel.plan(kernel.user_data, &with_sink, &state);
  }();
  // Other threads wait for the slot, so it gets a result in any case.
  slot.failure = base::or_out_of_memory([&]() -> Status {
    if (outcome != OPMUX_OK) {
      return {outcome_of(outcome), "call.plan",
              implementation_->id + " could not prepare: " + sink.text()};
    }
    PreparedPtr made = own(state);
    note_alive(made);
    slot.state = std::move(made);
    return {};
  });
  slot.done.store(1, std::memory_order_release);
  slot.done.notify_all();
}

PreparedPtr PreparedCache::own(void* state) const {
  try {
    return std::make_shared<const PreparedState>(implementation_, state);
  } catch (const std::bad_alloc&) {
    const registry::Kernel& kernel = implementation_->kernel;
    if (kernel.plan_free != nullptr) kernel.plan_free(kernel.user_data, state);
    throw;
  }
}

Result<PreparedPtr> PreparedCache::make_own(const opmux_call& call) {
  Slot slot;
  build(slot, call);
  if (!slot.failure.ok()) return slot.failure;
  return slot.state;
}

Result<PreparedPtr> PreparedCache::get(const PreparedKey& key, const opmux_call& call) {
  const auto [slot, mine] = claim(key);
  if (mine) {
    build(*slot, call);
    if (!slot->failure.ok()) forget(key);
  } else {
    slot->done.wait(0, std::memory_order_acquire);
  }
  if (!slot->failure.ok()) return slot->failure;
  return slot->state;
}

bool PreparedCache::trim() {
  std::vector<std::shared_ptr<Slot>> dropped;
  entries_.with([&](Entries& entries) {
    for (auto it = entries.by_key.begin(); it != entries.by_key.end();) {
      if (it->second.slot->done.load(std::memory_order_acquire) == 0) {
        ++it;
        continue;
      }
      dropped.push_back(std::move(it->second.slot));
      entries.by_age.erase(it->second.age);
      it = entries.by_key.erase(it);
    }
  });
  return !dropped.empty();
}

size_t PreparedCache::size() {
  return entries_.with([](Entries& entries) { return entries.by_key.size(); });
}

}  // namespace opmux::dispatch
