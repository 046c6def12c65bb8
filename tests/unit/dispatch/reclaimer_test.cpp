#include "dispatch/reclaim/reclaimer.hpp"

#include <barrier>
#include <thread>

#include "dispatch/plan/bound_plan.hpp"
#include "dispatch/plan/plan_ids.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"
#include "reclaim.hpp"

namespace opmux::dispatch {
namespace {

using test::collect;

/// Sets a flag when it is freed; owns the plans with its number.
class Noted final : public Retired {
 public:
  Noted(bool& freed, uint64_t plan) : freed_(freed), plan_(plan) {}
  ~Noted() override { freed_ = true; }
  bool owns_plan(uint64_t plan_id) const override { return plan_id == plan_; }

 private:
  bool& freed_;
  uint64_t plan_;
};

void retire(Reclaimer& reclaimer, bool& freed, uint64_t plan) {
  std::vector<std::unique_ptr<Retired>> items;
  items.push_back(std::make_unique<Noted>(freed, plan));
  reclaimer.retire(std::move(items));
  collect(reclaimer);
}

TEST(Reclaimer, frees_immediately_if_no_call_is_inside) {
  Reclaimer reclaimer;
  bool freed = false;
  retire(reclaimer, freed, 7);
  EXPECT_TRUE(freed);
  EXPECT_EQ(reclaimer.waiting(), 0u);
}

TEST(Reclaimer, counts_a_batch_as_waiting_until_its_objects_are_destroyed) {
  Reclaimer reclaimer;
  bool freed = false;
  std::vector<std::unique_ptr<Retired>> items;
  items.push_back(std::make_unique<Noted>(freed, 7));
  reclaimer.retire(std::move(items));
  const uint64_t number = reclaimer.newest();
  EXPECT_FALSE(freed) << "the owner destroys it after it has released its lock";
  Reclaimer::Batches finished = reclaimer.take_finished();
  EXPECT_FALSE(reclaimer.waits_for(number)) << "the thread that destroys it would wait for itself";
  std::thread([&] {
    EXPECT_TRUE(reclaimer.waits_for(number));
    EXPECT_FALSE(reclaimer.waits_for(number - 1));
  }).join();
  finished.front().clear();
  EXPECT_TRUE(freed);
  reclaimer.forget(finished);
  EXPECT_FALSE(reclaimer.waits_for(number));
}

TEST(Reclaimer, waits_for_a_call_of_its_plan_and_for_no_other) {
  ThreadBlock& block = own_thread_block();
  Reclaimer reclaimer;
  bool mine = false, other = false;
  block.marks[0].store(7);
  retire(reclaimer, mine, 7);
  retire(reclaimer, other, 8);
  EXPECT_FALSE(mine);
  EXPECT_TRUE(other);
  EXPECT_EQ(reclaimer.waiting(), 1u);
  EXPECT_EQ(reclaimer.blocker_count(), 1u);
  reclaimer.for_each_blocker([](const Blocker& blocker) { EXPECT_EQ(blocker.mark, 7u); });
  block.clear(0);
  collect(reclaimer);
  EXPECT_TRUE(mine);
}

TEST(Reclaimer, sees_marks_at_levels_that_a_thread_used_before) {
  ThreadBlock& block = own_thread_block();
  static crash::HazardSlot elsewhere;
  block.places.places[1].store(&elsewhere);
  elsewhere.marks[2].store(7 | kBoundBit);
  Reclaimer reclaimer;
  bool freed = false;
  retire(reclaimer, freed, 7 | kBoundBit);
  EXPECT_FALSE(freed);
  elsewhere.clear();
  collect(reclaimer);
  EXPECT_TRUE(freed);
  block.places.places[1].store(nullptr);
}

TEST(PlanIds, name_their_owner_and_implementation) {
  const PlanIds ids(1234567);
  const uint64_t id = ids.id(3, 41);
  EXPECT_TRUE(PlanIds::is_of(id, 1234567));
  EXPECT_FALSE(PlanIds::is_of(id, 1234568));
  EXPECT_EQ(id & crash::kNumberMask, crash::number_in_marks(41));
  EXPECT_NE(ids.id(4, 41), id);
  EXPECT_EQ(ids.id(0, crash::kNumberMask) & crash::kNumberMask, 0u) << "the number does not fit";
  EXPECT_EQ(id & kColdBit, 0u);
}

TEST(Reclaimer, waits_for_every_reader) {
  Reclaimer reclaimer;
  bool freed = false;
  {
    const SlowPathGuard mark;
    retire(reclaimer, freed, 7);
    EXPECT_FALSE(freed);
  }
  {
    const SlowPathGuard later;  // A different slot value than the one that was seen.
    collect(reclaimer);
    EXPECT_TRUE(freed);
  }
}

TEST(Reclaimer, an_ended_thread_blocks_nothing) {
  Reclaimer reclaimer;
  bool freed = false;
  std::barrier step(2);
  std::thread inside([&] {
    own_thread_block().begin_slow_call(2);
    own_thread_block().marks[2].store(9);
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  retire(reclaimer, freed, 9);
  EXPECT_FALSE(freed);
  step.arrive_and_wait();
  inside.join();
  collect(reclaimer);
  EXPECT_TRUE(freed);
}

TEST(Reclaimer, waiting_from_inside_is_refused) {
  ThreadBlock& block = own_thread_block();
  block.marks[0].store(7);
  const Status status = check_not_inside(marks_in_flight([](uint64_t mark) { return mark == 7; }));
  block.clear(0);
  EXPECT_EQ(status.reason(), "withdraw.inside");
  EXPECT_TRUE(check_not_inside({}).ok());
}

TEST(ThreadBlock, depth_is_the_first_free_level_and_at_most_eight) {
  ThreadBlock& block = own_thread_block();
  EXPECT_EQ(block.depth(), 0u);
  for (uint32_t level = 0; level < kMaxDepth; ++level) block.marks[level].store(level + 1);
  EXPECT_EQ(block.depth(), kMaxDepth);
  {
    const SlowPathGuard none;
    EXPECT_EQ(none.depth(), kMaxDepth);
  }
  EXPECT_EQ(block.marks[kMaxDepth - 1].load(), kMaxDepth)
      << "a mark beyond the last level is ignored";
  for (uint32_t level = 0; level < kMaxDepth; ++level) block.clear(level);
}

TEST(PlanList, uses_places_again_and_walks_over_those_taken) {
  PlanList roll;
  // The pointers are never dereferenced.
  auto* one = reinterpret_cast<BoundPlanState*>(uintptr_t{64});
  auto* two = reinterpret_cast<BoundPlanState*>(uintptr_t{128});
  PlanList::Place& first = roll.enter(one);
  PlanList::Place& second = roll.enter(two);
  EXPECT_NE(&first, &second);
  first.store(nullptr);
  const auto count = [&] {
    int plans = 0;
    roll.for_each([&](BoundPlanState&) { ++plans; });
    return plans;
  };
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(&roll.enter(one), &first);
  EXPECT_EQ(count(), 2);
}

}  // namespace
}  // namespace opmux::dispatch
