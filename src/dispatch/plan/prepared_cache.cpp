#include "dispatch/plan/prepared_cache.hpp"

#include <bit>

#include "base/status.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/plan/exact_words.hpp"

namespace opmux::dispatch {
PreparedState::~PreparedState() {
  const registry::Kernel& kernel = implementation_->kernel;
  if (kernel.plan_free != nullptr) kernel.plan_free(kernel.user_data, state_);
}

PreparedKey prepared_key(const registry::ImplementationRecord& implementation,
                         const schema::Signature& signature, const opmux_call& call) {
  PreparedKey key;
  key.facts.push_back(call.max_threads);
  key.facts.push_back(call.instance != nullptr ? 1 : 0);
  if (implementation.plan_reads) {
    for (const schema::Fact& fact : *implementation.plan_reads) {
      key.facts.push_back(value_of(signature, fact));
    }
  } else {
    exact_words(*signature.arguments, [&](int64_t word) { key.facts.push_back(word); });
  }
  if (implementation.has(OPMUX_IMPL_SERIAL)) {
    key.facts.push_back(std::bit_cast<int64_t>(&own_thread_block()));
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

std::pair<std::shared_ptr<PreparedCache::Slot>, bool> PreparedCache::claim(
    const PreparedKey& key, std::vector<PreparedPtr>& evicted) {
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
      for (size_t i = 0; i < kEvictAtOnce; ++i) {
        const auto oldest = entries.by_key.find(entries.by_age.back());
        if (oldest->second.slot->state) evicted.push_back(oldest->second.slot->state);
        entries.by_key.erase(oldest);
        entries.by_age.pop_back();
      }
    }
    entries.by_age.push_front(key);
    auto slot = std::make_shared<Slot>();
    slot->process = base::process_number();
    entries.by_key.emplace(key, Entry{slot, entries.by_age.begin()});
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
  const int32_t outcome = kernel.plan(kernel.user_data, &with_sink, &state);
  if (outcome == OPMUX_OK) {
    slot.state = std::make_shared<const PreparedState>(implementation_, state);
  } else {
    slot.failure = Status(outcome_of(outcome), "call.plan",
                          implementation_->id + " could not prepare: " + sink.text());
  }
  slot.done.store(1, std::memory_order_release);
  slot.done.notify_all();
}

Result<PreparedPtr> PreparedCache::make_own(const opmux_call& call) {
  Slot slot;
  build(slot, call);
  if (!slot.failure.ok()) return slot.failure;
  return slot.state;
}

Result<PreparedCache::Found> PreparedCache::get(const PreparedKey& key, const opmux_call& call) {
  Found found;
  const auto [slot, mine] = claim(key, found.evicted);
  if (mine) {
    build(*slot, call);
    if (!slot->failure.ok()) forget(key);
  } else {
    slot->done.wait(0, std::memory_order_acquire);
  }
  if (!slot->failure.ok()) return slot->failure;
  found.state = slot->state;
  return found;
}

std::vector<PreparedPtr> PreparedCache::trim() {
  return entries_.with([&](Entries& entries) {
    std::vector<PreparedPtr> dropped;
    for (auto it = entries.by_key.begin(); it != entries.by_key.end();) {
      Slot& slot = *it->second.slot;
      if (slot.done.load(std::memory_order_acquire) == 0) {
        ++it;
        continue;
      }
      if (slot.state) dropped.push_back(slot.state);
      entries.by_age.erase(it->second.age);
      it = entries.by_key.erase(it);
    }
    return dropped;
  });
}

size_t PreparedCache::size() {
  return entries_.with([](Entries& entries) { return entries.by_key.size(); });
}

}  // namespace opmux::dispatch
