#include "dispatch/operator_slot.hpp"

#include <queue>

#include "base/fork_guarded.hpp"
#include "base/lazy.hpp"

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

std::unique_ptr<OperatorState> OperatorSlot::replace(std::unique_ptr<OperatorState> next) {
  const uint64_t new_epoch = next == nullptr ? 0 : next->epoch();
  std::unique_ptr<OperatorState> before(
      current.exchange(next.release(), std::memory_order_acq_rel));
  epoch.store(new_epoch, std::memory_order_release);
  return before;
}

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

}  // namespace opmux::dispatch
