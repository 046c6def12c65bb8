#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/system/process.hpp"
#include "dispatch/decide/class_layout.hpp"
#include "dispatch/decide/decision.hpp"

namespace opmux::dispatch {

/// The decision cache of one DecisionCache: maps a class key to its Decision. An insert-only hash
/// table with linear probing. Lookups take no lock; inserts take one, because each follows a
/// decision, which costs far more.
///
/// The table consists of up to four steps of growing size. A step that is half full is never
/// rehashed; inserts continue in the next step. Half of the slots of a step therefore stay empty,
/// and probing for an absent key ends at one of them. Entries are immutable and published by one
/// store into an empty slot, so the acquire load in find() sees a complete entry. Entries and steps
/// are freed only with the table, so readers need no protection beyond the hazard slot that keeps
/// the CompiledOperator alive. A fork during an insert leaves the child a table without that entry.
class ClassTable {
 public:
  static constexpr uint32_t kCapacity = 4096;
  static constexpr uint32_t kMany = 256;  ///< above this, "dispatch.many_classes" is logged

  /// An insert calls `before_store` after it found room for the entry and before it stores the
  /// entry. Tests stop threads there.
  explicit ClassTable(void (*before_store)() = [] {}) : before_store_(before_store) {}
  ~ClassTable();
  ClassTable(const ClassTable&) = delete;
  ClassTable& operator=(const ClassTable&) = delete;

  /// Returns the cached choice for a class, or null.
  const Decision* find(const ClassKey& key) const;

  /// Caches a choice and returns the one in the table, which is an earlier one if another thread
  /// inserted the key first. Returns null and leaves `choice` untouched if the table is full.
  const Decision* insert(const ClassKey& key, std::shared_ptr<const Decision>& choice);

  uint32_t size() const { return size_.load(std::memory_order_relaxed); }
  bool full() const { return size() >= kCapacity; }

  /// Calls visit(key, choice) for each class.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& step : steps_) {
      const Step* at = step.load(std::memory_order_acquire);
      for (uint32_t i = 0; at != nullptr && i <= at->mask; ++i) {
        if (const Entry* entry = at->slots[i].load(std::memory_order_acquire))
          visit(entry->key, *entry->choice);
      }
    }
  }

 private:
  struct Entry {
    ClassKey key;
    uint64_t hash;
    std::shared_ptr<const Decision> choice;
  };
  struct Step {
    explicit Step(uint32_t size) : mask(size - 1), slots(new std::atomic<const Entry*>[size]()) {}
    uint32_t mask;
    uint32_t used = 0;  ///< protected by `inserting_`
    std::unique_ptr<std::atomic<const Entry*>[]> slots;
  };
  static constexpr std::array<uint32_t, 4> kStepSizes{32, 256, 1024, 8192};

  const Step* step(size_t index) const { return steps_[index].load(std::memory_order_acquire); }
  /// The first step that is less than half full; makes it if needed. The table must not be full and
  /// `inserting_` must be held, as for put().
  Step& step_with_room();
  void put(Step& step, std::unique_ptr<const Entry> entry);

  void (*before_store_)();
  base::ForkMutex inserting_;
  std::array<std::atomic<Step*>, kStepSizes.size()> steps_{};
  std::atomic<uint32_t> size_{0};
};

}  // namespace opmux::dispatch
