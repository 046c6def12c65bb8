#include "dispatch/reclaim/reclaimer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/memory.hpp"
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

bool find_marks_in_flight(const std::function<bool(uint64_t plan_id)>& relevant,
                          std::vector<Blocker>& found) noexcept {
  bool enough = true;
  for_each_thread([&](ThreadBlock& block) {
    for_each_mark(block, [&](uint32_t place, uint32_t level, uint64_t mark) {
      if (!enough || ((mark & kColdBit) == 0 && !relevant(mark))) return;
      if (const auto blocker = blocker_of(block, place, level, mark))
        enough = base::if_memory([&] { found.push_back(*blocker); });
    });
  });
  if (!enough) found.clear();
  return enough;
}

void drop_finished(std::vector<Blocker>& blockers,
                   const std::function<bool(uint64_t plan_id)>& relevant) noexcept {
  if (blockers.empty()) return;
  // Those that still block are moved to the front. Visit only blocks on the thread list: a thread
  // that is not listed has ended, and its calls with it.
  auto still = blockers.begin();
  for_each_thread([&](ThreadBlock& block) {
    for (auto at = still; at != blockers.end(); ++at) {
      if (at->thread == block.number && still_blocks(block, *at, relevant)) {
        std::iter_swap(still, at);
        ++still;
      }
    }
  });
  blockers.erase(still, blockers.end());
}

namespace {

/// The calls of one thread.
struct CallsOfThread {
  uint64_t thread = 0;
  std::array<Blocker, size_t{crash::HazardSlotPlaces::kMost} * kMaxDepth> calls;
  size_t count = 0;
};

/// The calls of the thread with the lowest number above `after`.
std::optional<CallsOfThread> next_thread(uint64_t after) {
  std::optional<CallsOfThread> next;
  for_each_thread([&](ThreadBlock& block) {
    if (block.number <= after || (next && block.number > next->thread)) return;
    next.emplace().thread = block.number;
    for_each_mark(block, [&](uint32_t place, uint32_t level, uint64_t mark) {
      if (const auto blocker = blocker_of(block, place, level, mark))
        next->calls[next->count++] = *blocker;
    });
  });
  return next;
}

bool any_left(const CallsOfThread& of) {
  bool left = false;
  for_each_thread([&](ThreadBlock& block) {
    if (block.number != of.thread) return;
    for (size_t i = 0; i < of.count; ++i)
      left |= still_blocks(block, of.calls[i], [](uint64_t) { return true; });
  });
  return left;
}

}  // namespace

bool wait_for_all_calls() noexcept {
  if (thread_number != 0 && thread_block->depth() != 0) return false;
  // If the barrier is refused, calls that began a moment ago may be missed, as in scan().
  if (!synchronize_all_threads()) return false;
  for (auto thread = next_thread(0); thread; thread = next_thread(thread->thread)) {
    while (any_left(*thread)) std::this_thread::yield();
  }
  return true;
}

Status check_not_inside(const std::vector<Blocker>& blockers) {
  const bool inside = std::ranges::any_of(
      blockers, [](const Blocker& blocker) { return blocker.thread == thread_number; });
  return inside ? waits_for_itself() : Status();
}

Status waits_for_itself() {
  return {Code::failed, "withdraw.inside",
          "cannot wait for a call to end from inside that call; destroy the registration instead, "
          "which does not wait"};
}

bool Reclaimer::Batch::owns_plan(uint64_t plan_id) const {
  return std::ranges::any_of(items_, [&](const auto& item) { return item->owns_plan(plan_id); });
}

bool Reclaimer::Batch::slow_calls_use_it() const {
  return std::ranges::any_of(items_, [](const auto& item) { return item->slow_calls_use_it(); });
}

Reclaimer::~Reclaimer() = default;

Reclaimer::Batches Reclaimer::prepare(size_t items) {
  // Few calls are inside retired objects, so there is rarely more than this to note.
  constexpr size_t kUsualBlockers = 8;
  Batches made(1);
  made.front().items_.reserve(items);
  made.front().blockers_.reserve(kUsualBlockers);
  made.front().destroyed_.emplace_back();
  return made;
}

void Reclaimer::scan(Batch& batch, bool synchronized) noexcept {
  batch.scan_ = Batch::Scan::no_barrier;
  if (!synchronized) return;
  batch.scan_ = Batch::Scan::no_memory;
  const auto owned = [&](uint64_t plan_id) { return batch.owns_plan(plan_id); };
  if (!find_marks_in_flight(owned, batch.blockers_)) return;
  batch.scan_ = Batch::Scan::done;
  if (batch.slow_calls_use_it()) return;
  std::erase_if(batch.blockers_, [](const Blocker& blocker) { return blocker.slow_call != 0; });
}

void Reclaimer::retire(Batches batches) noexcept {
  std::erase_if(batches, [](const Batch& batch) { return batch.size() == 0; });
  const bool synchronized = !batches.empty() && synchronize_all_threads();
  for (Batch& batch : batches) {
    batch.number_ = ++last_number_;
    scan(batch, synchronized);
  }
  batches_.splice(batches_.end(), batches);
  collect();
}

void Reclaimer::retire(std::vector<std::unique_ptr<Retired>> items) {
  Batches made = prepare(items.size());
  for (auto& item : items) made.front().add(std::move(item));
  retire(std::move(made));
}

void Reclaimer::collect() noexcept {
  for (auto at = batches_.begin(); at != batches_.end();) {
    const auto batch = at++;
    if (batch->scan_ != Batch::Scan::done) scan(*batch, synchronize_all_threads());
    drop_finished(batch->blockers_, [&](uint64_t plan_id) { return batch->owns_plan(plan_id); });
    if (batch->scan_ != Batch::Scan::done || !batch->blockers_.empty()) continue;
    finished_.splice(finished_.end(), batches_, batch);
  }
}

Reclaimer::Batches Reclaimer::take_finished() noexcept {
  for (Batch& batch : finished_) {
    batch.destroyed_.front() = {batch.number_, base::process_number(), std::this_thread::get_id()};
    destroyed_.splice(destroyed_.end(), batch.destroyed_);
  }
  return std::exchange(finished_, {});
}

void Reclaimer::forget(const Batches& finished) noexcept {
  std::erase_if(destroyed_, [&](const Destroyed& one) {
    return std::ranges::any_of(finished,
                               [&](const Batch& batch) { return batch.number_ == one.number; });
  });
}

bool Reclaimer::waits_for(uint64_t number) const {
  // A thread that was destroying a batch when the process forked does not exist in the child.
  const bool destroying = std::ranges::any_of(destroyed_, [&](const Destroyed& one) {
    return one.number <= number && one.process == base::process_number() &&
           one.thread != std::this_thread::get_id();
  });
  return destroying || (!batches_.empty() && batches_.front().number_ <= number);
}

bool Reclaimer::synchronized() const {
  return std::ranges::none_of(
      batches_, [](const Batch& batch) { return batch.scan_ == Batch::Scan::no_barrier; });
}

bool Reclaimer::blocked_by_this_thread() const {
  bool found = false;
  for_each_blocker([&](const Blocker& blocker) { found |= blocker.thread == thread_number; });
  return found;
}

size_t Reclaimer::blocker_count() const {
  size_t count = 0;
  for_each_blocker([&](const Blocker&) { ++count; });
  return count;
}

}  // namespace opmux::dispatch
