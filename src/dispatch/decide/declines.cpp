#include "dispatch/decide/declines.hpp"

#include <memory>

#include "dispatch/decide/class_layout.hpp"

namespace opmux::dispatch {
namespace {

uint64_t word_of(uint64_t exact_hash, uint32_t number) { return mix(exact_hash, number) | 1; }

}  // namespace

Declines::~Declines() { delete table_.load(); }

Declines::Table& Declines::table() {
  Table* known = table_.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto made = std::make_unique<Table>();
  if (table_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *known;
}

bool Declines::remember(uint64_t exact_hash, uint64_t shape_hash, uint32_t number) {
  Table& all = table();
  const uint64_t word = word_of(exact_hash, number);
  for (size_t probe = 0; probe < kMost; ++probe) {
    uint64_t there = 0;
    if (all.exact[(word + probe) % kMost].compare_exchange_strong(there, word,
                                                                  std::memory_order_acq_rel) ||
        there == word) {
      all.shapes[filter_word(shape_hash)].fetch_or(filter_bit(shape_hash),
                                                   std::memory_order_release);
      return true;
    }
  }
  return false;
}

bool Declines::has(uint64_t exact_hash, uint32_t number) const {
  const Table* const all = table_.load(std::memory_order_acquire);
  if (all == nullptr) return false;
  const uint64_t word = word_of(exact_hash, number);
  for (size_t probe = 0; probe < kMost; ++probe) {
    const uint64_t there = all->exact[(word + probe) % kMost].load(std::memory_order_acquire);
    if (there == word) return true;
    if (there == 0) return false;
  }
  return false;
}

}  // namespace opmux::dispatch
