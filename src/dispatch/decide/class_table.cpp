#include "dispatch/decide/class_table.hpp"

#include <mutex>

namespace opmux::dispatch {

ClassTable::~ClassTable() {
  for (auto& slot : steps_) {
    const std::unique_ptr<Step> owned(slot.load());
    for (uint32_t i = 0; owned != nullptr && i <= owned->mask; ++i) delete owned->slots[i].load();
  }
}

const Decision* ClassTable::find(const ClassKey& key) const {
  const uint64_t hash = key.hash();
  for (size_t s = 0; s < kStepSizes.size(); ++s) {
    const Step* at = step(s);
    if (at == nullptr) return nullptr;
    for (uint64_t i = 0, probe = hash >> 20; i <= at->mask; ++i, ++probe) {
      const Entry* entry = at->slots[probe & at->mask].load(std::memory_order_acquire);
      if (entry == nullptr) break;
      if (entry->hash == hash && entry->key.equals(key)) return entry->choice.get();
    }
  }
  return nullptr;
}

ClassTable::Step& ClassTable::step_with_room() {
  for (size_t s = 0;; ++s) {
    Step* at = steps_[s].load(std::memory_order_relaxed);
    if (at == nullptr) {
      at = new Step(kStepSizes[s]);
      steps_[s].store(at, std::memory_order_release);
    }
    if (at->used < kStepSizes[s] / 2) return *at;
  }
}

void ClassTable::put(Step& at, std::unique_ptr<const Entry> entry) {
  before_store_();
  // Count the entry before it is stored, so that a step never has more entries than it counts.
  ++at.used;
  size_.fetch_add(1, std::memory_order_relaxed);
  uint64_t probe = entry->hash >> 20;
  while (at.slots[probe & at.mask].load(std::memory_order_relaxed) != nullptr) ++probe;
  at.slots[probe & at.mask].store(entry.release(), std::memory_order_release);
}

const Decision* ClassTable::insert(const ClassKey& key, std::shared_ptr<const Decision>& choice) {
  const std::scoped_lock lock(inserting_);
  if (const Decision* known = find(key)) return known;
  if (full()) return nullptr;
  put(step_with_room(), std::make_unique<const Entry>(Entry{key, key.hash(), choice}));
  return choice.get();
}

}  // namespace opmux::dispatch
