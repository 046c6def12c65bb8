#include "dispatch/operator_names.hpp"

#include <queue>

#include "base/locks.hpp"

namespace opmux::dispatch {
namespace {

struct Numbers {
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free;
};

base::ForkGuarded<Numbers>& numbers() {
  static constinit base::Lazy<base::ForkGuarded<Numbers>> guarded;
  return guarded.get();
}

// Separate from Numbers, which a forked child may lose: a number must never be given out twice.
std::atomic<uint32_t> next_number{0};

}  // namespace

uint32_t take_slot_number() {
  return numbers().with([](Numbers& all) {
    if (all.free.empty()) return next_number.fetch_add(1, std::memory_order_relaxed);
    const uint32_t number = all.free.top();
    all.free.pop();
    return number;
  });
}

void give_back_slot_number(uint32_t number) {
  numbers().with([&](Numbers& all) { all.free.push(number); });
}

namespace {

/// FNV-1a, because it is fast for short names and every call by name computes it.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash ^ hash >> 29;
}

}  // namespace

OperatorNames::~OperatorNames() { delete table_.load(); }

OperatorSlot* OperatorNames::find(std::string_view name) const {
  const Table* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  const uint64_t hash = hash_of(name);
  for (uint64_t probe = hash;; ++probe) {
    OperatorSlot* slot = table->slots[probe & table->mask].load(std::memory_order_acquire);
    if (slot == nullptr || (slot->name_hash == hash && slot->name() == name)) return slot;
  }
}

void OperatorNames::put(Table& table, OperatorSlot* slot) {
  uint64_t probe = slot->name_hash;
  while (table.slots[probe & table.mask].load(std::memory_order_relaxed) != nullptr) ++probe;
  table.slots[probe & table.mask].store(slot, std::memory_order_release);
}

void OperatorNames::insert(OperatorSlot* slot) {
  slot->name_hash = hash_of(slot->name());
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
