#include "dispatch/operator_names.hpp"

#include <cstring>

namespace opmux::dispatch {
namespace {

/// Eight bytes at a time: a call by name pays for this.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = name.size() * 0x9E3779B97F4A7C15ull;
  while (!name.empty()) {
    uint64_t word = 0;
    const size_t taken = name.size() < 8 ? name.size() : 8;
    std::memcpy(&word, name.data(), taken);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
    name.remove_prefix(taken);
  }
  return hash;
}

}  // namespace

OperatorNames::~OperatorNames() { delete table_.load(); }

OperatorSlot* OperatorNames::find(std::string_view name) const {
  const Table* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  for (uint64_t probe = hash_of(name);; ++probe) {
    OperatorSlot* slot = table->slots[probe & table->mask].load(std::memory_order_acquire);
    if (slot == nullptr || slot->name() == name) return slot;
  }
}

void OperatorNames::put(Table& table, OperatorSlot* slot) {
  uint64_t probe = hash_of(slot->name());
  while (table.slots[probe & table.mask].load(std::memory_order_relaxed) != nullptr) ++probe;
  table.slots[probe & table.mask].store(slot, std::memory_order_release);
}

void OperatorNames::insert(OperatorSlot* slot) {
  Table* table = table_.load(std::memory_order_relaxed);
  if (table == nullptr || count_ * 2 > table->mask) {
    auto larger = std::make_unique<Table>(table == nullptr ? 64 : (table->mask + 1) * 4);
    for (uint32_t i = 0; table != nullptr && i <= table->mask; ++i) {
      OperatorSlot* there = table->slots[i].load(std::memory_order_relaxed);
      if (there != nullptr) put(*larger, there);
    }
    larger->smaller.reset(table);
    table = larger.release();
    table_.store(table, std::memory_order_release);
  }
  put(*table, slot);
  ++count_;
}

}  // namespace opmux::dispatch
