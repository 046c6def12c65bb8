#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "dispatch/compiled_operator.hpp"

namespace opmux::dispatch {

/// Allocates and frees slot numbers. The lowest free number is taken first, because every thread
/// has an array indexed by slot number.
uint32_t take_slot_number();
void give_back_slot_number(uint32_t number) noexcept;

/// Maps names to operators: an insert-only hash table with lock-free lookup. The owner serializes
/// insert(). A slot is published by a release store into an empty entry. When the table grows, the
/// writer fills a larger copy and publishes it by one release store; readers of the old table may
/// miss only operators that are inserted after their load.
class OperatorNames {
 public:
  ~OperatorNames();
  OperatorSlot* find(std::string_view name) const;
  /// Grows the table so that this many operators can be inserted without memory.
  void reserve(size_t more);
  /// reserve() must have made room.
  void insert(OperatorSlot* slot) noexcept;

  template <class Visit>
  void for_each(Visit&& visit) const {
    const Table* table = table_.load(std::memory_order_acquire);
    for (uint32_t i = 0; table != nullptr && i <= table->mask; ++i) {
      if (OperatorSlot* slot = table->slots[i].load(std::memory_order_acquire)) visit(*slot);
    }
  }

 private:
  struct Table {
    explicit Table(uint32_t size) : mask(size - 1), slots(new std::atomic<OperatorSlot*>[size]()) {}
    uint32_t mask;
    std::unique_ptr<std::atomic<OperatorSlot*>[]> slots;
    std::unique_ptr<Table> smaller;  ///< previous table, kept because readers may still use it
  };
  static void put(Table& table, OperatorSlot* slot);

  std::atomic<Table*> table_{nullptr};
  uint32_t count_ = 0;
};

}  // namespace opmux::dispatch
