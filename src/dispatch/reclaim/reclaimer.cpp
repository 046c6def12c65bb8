#include "dispatch/reclaim/reclaimer.hpp"

#include <sched.h>

#include <algorithm>

namespace opmux::dispatch {

namespace {

/// Visits every non-zero hazard slot of a thread, in all of its MarkSlots. The acquire load pairs
/// with the release store in ThreadBlock::clear(): when the scan reads 0, all reads of the ended
/// call happen before the object is freed.
template <class Visit>
void for_each_mark(const ThreadBlock& block, Visit&& visit) {
  for (uint32_t place = 0; place < crash::HazardSlotPlaces::kMost; ++place) {
    const crash::HazardSlot* const slot =
        block.places.places[place].load(std::memory_order_acquire);
    if (slot == nullptr) return;
    for (uint32_t level = 0; level < kMaxDepth; ++level) {
      const uint64_t mark = slot->marks[level].load(std::memory_order_acquire);
      if (mark != 0) visit(Blocker{&block, place, level, mark});
    }
  }
}

}  // namespace

std::vector<Blocker> marks_in_flight(const std::function<bool(uint64_t mark)>& relevant) {
  std::vector<Blocker> found;
  for_each_thread([&](ThreadBlock& block) {
    for_each_mark(block, [&](const Blocker& mark) {
      if ((mark.mark & kColdBit) != 0 || relevant(mark.mark)) found.push_back(mark);
    });
  });
  return found;
}

void drop_finished(std::vector<Blocker>& blockers) {
  if (blockers.empty()) return;
  std::vector<Blocker> still;
  // Visit only blocks on the thread list. A block that is not listed belonged to a thread that has
  // ended, so its marks are over and its memory is gone.
  for_each_thread([&](ThreadBlock& block) {
    for (const Blocker& blocker : blockers) {
      if (blocker.block != &block) continue;
      for_each_mark(block, [&](const Blocker& mark) {
        if (mark == blocker) still.push_back(blocker);
      });
    }
  });
  blockers = std::move(still);
}

Status wait_until_left(std::vector<Blocker> blockers) {
  for (const Blocker& blocker : blockers) {
    if (blocker.block == thread_block) {
      return {Code::failed, "withdraw.inside",
              "cannot wait for a call to end from inside that call; destroy the registration "
              "instead, which does not wait"};
    }
  }
  while (!blockers.empty()) {
    sched_yield();
    drop_finished(blockers);
  }
  return {};
}

Reclaimer::~Reclaimer() = default;

void Reclaimer::retire(std::vector<std::unique_ptr<Retired>> items) {
  if (!items.empty()) {
    synchronize_all_threads();
    Batch batch{std::move(items), {}};
    batch.blockers = marks_in_flight([&](uint64_t plan) {
      return std::ranges::any_of(batch.items,
                                 [&](const auto& item) { return item->owns_plan(plan); });
    });
    batches_.push_back(std::move(batch));
  }
  collect();
}

void Reclaimer::collect() {
  for (Batch& batch : batches_) drop_finished(batch.blockers);
  std::erase_if(batches_, [](const Batch& batch) { return batch.blockers.empty(); });
}

std::vector<Blocker> Reclaimer::blockers() const {
  std::vector<Blocker> all;
  for (const Batch& batch : batches_)
    all.insert(all.end(), batch.blockers.begin(), batch.blockers.end());
  return all;
}

}  // namespace opmux::dispatch
