#include "dispatch/decide/class_table.hpp"

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
    for (uint64_t probe = hash >> 20;; ++probe) {
      const Entry* entry = at->slots[probe & at->mask].load(std::memory_order_acquire);
      if (entry == nullptr) break;
      if (entry->hash == hash && entry->key.equals(key)) return entry->choice.get();
    }
  }
  return nullptr;
}

ClassTable::Step* ClassTable::make_step(size_t index) {
  Step* present = steps_[index].load(std::memory_order_acquire);
  if (present != nullptr) return present;
  auto made = std::make_unique<Step>(kStepSizes[index]);
  if (steps_[index].compare_exchange_strong(present, made.get(), std::memory_order_acq_rel)) {
    return made.release();
  }
  return present;
}

const ClassTable::Entry* ClassTable::insert_into(Step& at, std::unique_ptr<Entry>& entry) {
  // A step stays at most half full, so that probing for an absent key ends after a few slots.
  if (at.used.load(std::memory_order_relaxed) * 2 > at.mask) return nullptr;
  for (uint64_t probe = entry->hash >> 20;; ++probe) {
    const Entry* there = nullptr;
    if (at.slots[probe & at.mask].compare_exchange_strong(there, entry.get(),
                                                          std::memory_order_acq_rel)) {
      at.used.fetch_add(1, std::memory_order_relaxed);
      size_.fetch_add(1, std::memory_order_relaxed);
      return entry.release();
    }
    if (there->hash == entry->hash && there->key.equals(entry->key)) return there;
  }
}

const Decision* ClassTable::insert(const ClassKey& key, std::shared_ptr<const Decision>& choice) {
  if (full()) return nullptr;
  auto entry = std::make_unique<Entry>(Entry{key, key.hash(), choice});
  for (size_t s = 0; s < kStepSizes.size(); ++s) {
    if (const Entry* kept = insert_into(*make_step(s), entry)) return kept->choice.get();
  }
  return nullptr;
}

}  // namespace opmux::dispatch
