#include "dispatch/reclaim/reclaimer.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/system/process.hpp"

namespace opmux::dispatch {

namespace {

/// Visits every non-zero hazard slot of a thread, in all of its HazardSlots. The acquire load pairs
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
      if (mark != 0) visit(place, level, mark);
    }
  }
}

/// Describes the call behind a mark; nullopt if it has ended. A slow or nested call that runs a
/// plan shows the id of that plan; `slow_calls` tells it from a plan in hazard slot 0. If the
/// thread begins another call meanwhile, the result describes that one, which is later than the
/// one to wait for.
std::optional<Blocker> blocker_of(const ThreadBlock& block, uint32_t place, uint32_t level,
                                  uint64_t mark) {
  Blocker found{block.number, place, level, mark, 0, 0};
  found.slow_call =
      (mark & kColdBit) != 0 ? mark : block.slow_calls[level].load(std::memory_order_acquire);
  if (found.slow_call != 0 || (mark & kBoundBit) != 0) return found;
  // Slow and nested calls clear `slow_calls` when they have ended, and the hazard slot after that.
  if (level != 0) return std::nullopt;
  found.finished = block.finished_calls();
  return found;
}

template <class Relevant>
bool still_blocks(const ThreadBlock& block, const Blocker& blocker, Relevant&& relevant) {
  const crash::HazardSlot* const slot =
      block.places.places[blocker.place].load(std::memory_order_acquire);
  const uint64_t mark = slot->marks[blocker.level].load(std::memory_order_acquire);
  if (blocker.slow_call != 0) {
    if (block.slow_calls[blocker.level].load(std::memory_order_acquire) != blocker.slow_call) {
      return false;
    }
    return (mark & kColdBit) != 0 || relevant(mark);
  }
  if (mark != blocker.mark) return false;
  return (mark & kBoundBit) != 0 || block.finished_calls() == blocker.finished;
}

}  // namespace

bool has_mark(const ThreadBlock& block) {
  bool found = false;
  for_each_mark(block, [&](uint32_t, uint32_t, uint64_t) { found = true; });
  return found;
}

std::vector<Blocker> marks_in_flight(const std::function<bool(uint64_t plan_id)>& relevant) {
  std::vector<Blocker> found;
  for_each_thread([&](ThreadBlock& block) {
    for_each_mark(block, [&](uint32_t place, uint32_t level, uint64_t mark) {
      if ((mark & kColdBit) == 0 && !relevant(mark)) return;
      if (const auto blocker = blocker_of(block, place, level, mark)) found.push_back(*blocker);
    });
  });
  return found;
}

void drop_finished(std::vector<Blocker>& blockers,
                   const std::function<bool(uint64_t plan_id)>& relevant) {
  if (blockers.empty()) return;
  std::vector<Blocker> still;
  // Visit only blocks on the thread list: a thread that is not listed has ended, and its calls with
  // it.
  for_each_thread([&](ThreadBlock& block) {
    for (const Blocker& blocker : blockers) {
      if (blocker.thread == block.number && still_blocks(block, blocker, relevant)) {
        still.push_back(blocker);
      }
    }
  });
  blockers = std::move(still);
}

Status check_not_inside(const std::vector<Blocker>& blockers) {
  const bool inside = std::ranges::any_of(
      blockers, [](const Blocker& blocker) { return blocker.thread == thread_number; });
  if (!inside) return {};
  return {Code::failed, "withdraw.inside",
          "cannot wait for a call to end from inside that call; destroy the registration instead, "
          "which does not wait"};
}

bool Reclaimer::Batch::owns_plan(uint64_t plan_id) const {
  return std::ranges::any_of(items, [&](const auto& item) { return item->owns_plan(plan_id); });
}

bool Reclaimer::Batch::slow_calls_use_it() const {
  return std::ranges::any_of(items, [](const auto& item) { return item->slow_calls_use_it(); });
}

Reclaimer::~Reclaimer() = default;

void Reclaimer::scan(Batch& batch) {
  batch.scanned = synchronize_all_threads();
  if (!batch.scanned) return;
  batch.blockers = marks_in_flight([&](uint64_t plan_id) { return batch.owns_plan(plan_id); });
  if (batch.slow_calls_use_it()) return;
  std::erase_if(batch.blockers, [](const Blocker& blocker) { return blocker.slow_call != 0; });
}

void Reclaimer::retire(std::vector<std::unique_ptr<Retired>> items) {
  if (!items.empty()) {
    batches_.push_back({std::move(items), {}, ++last_number_, false});
    scan(batches_.back());
  }
  collect();
}

void Reclaimer::collect() {
  for (Batch& batch : batches_) {
    if (!batch.scanned) scan(batch);
    drop_finished(batch.blockers, [&](uint64_t plan_id) { return batch.owns_plan(plan_id); });
  }
  std::erase_if(batches_, [&](Batch& batch) {
    if (!batch.scanned || !batch.blockers.empty()) return false;
    std::ranges::move(batch.items, std::back_inserter(finished_.items));
    finished_.batches.push_back(batch.number);
    return true;
  });
}

Reclaimer::Finished Reclaimer::take_finished() {
  for (const uint64_t number : finished_.batches) {
    destroyed_.push_back({number, base::process_number(), std::this_thread::get_id()});
  }
  return std::exchange(finished_, {});
}

void Reclaimer::forget(const std::vector<uint64_t>& batches) {
  std::erase_if(destroyed_, [&](const Destroyed& one) {
    return std::ranges::find(batches, one.number) != batches.end();
  });
}

bool Reclaimer::waits_for(uint64_t number) const {
  // A thread that was destroying a batch when the process forked does not exist in the child.
  const bool destroying = std::ranges::any_of(destroyed_, [&](const Destroyed& one) {
    return one.number <= number && one.process == base::process_number() &&
           one.thread != std::this_thread::get_id();
  });
  return destroying || (!batches_.empty() && batches_.front().number <= number);
}

bool Reclaimer::synchronized() const {
  return std::ranges::all_of(batches_, [](const Batch& batch) { return batch.scanned; });
}

std::vector<Blocker> Reclaimer::blockers() const {
  std::vector<Blocker> all;
  for (const Batch& batch : batches_)
    all.insert(all.end(), batch.blockers.begin(), batch.blockers.end());
  return all;
}

}  // namespace opmux::dispatch
