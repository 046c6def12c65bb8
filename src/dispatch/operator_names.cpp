#include "dispatch/operator_names.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "base/locks.hpp"
#include "base/memory.hpp"

namespace opmux::dispatch {
namespace {

struct Numbers {
  std::vector<uint32_t> free;  ///< a heap, the lowest number first
  size_t taken = 0;
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
    // Makes room for the number, so that it can be given back without memory.
    const size_t needed = all.free.size() + all.taken + 1;
    if (all.free.capacity() < needed) all.free.reserve(2 * needed);
    ++all.taken;
    if (all.free.empty()) return next_number.fetch_add(1, std::memory_order_relaxed);
    std::ranges::pop_heap(all.free, std::greater());
    const uint32_t number = all.free.back();
    all.free.pop_back();
    return number;
  });
}

void give_back_slot_number(uint32_t number) noexcept {
  // A forked child may have lost the list, and with it the room; then the number is lost too.
  base::if_memory([&] {
    numbers().with([&](Numbers& all) {
      all.free.push_back(number);
      std::ranges::push_heap(all.free, std::greater());
      if (all.taken > 0) --all.taken;
    });
  });
}

namespace {

template <class Word>
uint64_t word_at(const char* text) {
  Word word;
  std::memcpy(&word, text, sizeof(word));
  return word;
}

/// The low and the high half of the product, combined; every bit of both factors affects it.
uint64_t folded_product(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 Wide;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Hashes 16 bytes by one multiplication, because every call by name computes it: names of up to 16
/// bytes are read as two words that may overlap.
uint64_t hash_of(std::string_view name) {
  constexpr uint64_t kFirst = 0x9e3779b97f4a7c15ull, kSecond = 0xe7037ed1a0b428dbull;
  const char* at = name.data();
  size_t left = name.size();
  uint64_t hash = left * kFirst;
  for (; left > 16; at += 16, left -= 16) {
    hash = folded_product(word_at<uint64_t>(at) ^ kSecond, word_at<uint64_t>(at + 8) ^ hash);
  }
  uint64_t low = 0, high = 0;
  if (left >= 8) {
    low = word_at<uint64_t>(at);
    high = word_at<uint64_t>(at + left - 8);
  } else if (left >= 4) {
    low = word_at<uint32_t>(at);
    high = word_at<uint32_t>(at + left - 4);
  } else if (left > 0) {
    low = static_cast<uint8_t>(at[0]);
    high = word_at<uint8_t>(at + left / 2) << 8 | word_at<uint8_t>(at + left - 1);
  }
  return folded_product(low ^ kSecond, high ^ hash);
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

void OperatorNames::reserve(size_t more) {
  Table* table = table_.load(std::memory_order_relaxed);
  uint64_t size = table == nullptr ? 64 : uint64_t{table->mask} + 1;
  while ((count_ + more) * 2 > size) size *= 4;
  if (table != nullptr && size == uint64_t{table->mask} + 1) return;
  auto larger = std::make_unique<Table>(static_cast<uint32_t>(size));
  for (uint32_t i = 0; table != nullptr && i <= table->mask; ++i) {
    OperatorSlot* there = table->slots[i].load(std::memory_order_relaxed);
    if (there != nullptr) put(*larger, there);
  }
  larger->smaller.reset(table);
  table_.store(larger.release(), std::memory_order_release);
}

void OperatorNames::insert(OperatorSlot* slot) noexcept {
  slot->name_hash = hash_of(slot->name());
  put(*table_.load(std::memory_order_relaxed), slot);
  ++count_;
}

}  // namespace opmux::dispatch
