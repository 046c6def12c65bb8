#include "shadow/shadow_queue.hpp"
#include "shadow/shadow_sampler.hpp"

namespace opmux::shadow {
namespace {

TEST(ShadowInterval, is_short_at_first_and_never_longer_than_configured) {
  EXPECT_EQ(shadow_interval(1024, 0, false), 16u);
  EXPECT_EQ(shadow_interval(1024, 100, false), 128u);
  EXPECT_EQ(shadow_interval(1024, 1000, false), 1024u);
  EXPECT_EQ(shadow_interval(1000, 1000, false), 512u) << "the next lower power of two";
  EXPECT_EQ(shadow_interval(8, 0, false), 8u);
  EXPECT_EQ(shadow_interval(8, 1000, false), 8u);
  EXPECT_EQ(shadow_interval(0, 0, true), 0u);
}

TEST(ShadowInterval, is_one_after_a_mismatch) {
  EXPECT_EQ(shadow_interval(1024, 0, true), 1u);
  EXPECT_EQ(shadow_interval(1024, 15, true), 1u);
  EXPECT_EQ(shadow_interval(1024, 16, true), 16u);
}

TEST(ShadowSampler, picks_calls_at_the_configured_rate_without_a_pattern) {
  ShadowSampler sampler(7);
  int picked = 0;
  std::array<int, 16> by_place{};
  for (int call = 0; call < 160'000; ++call) {
    if (!sampler.due()) continue;
    sampler.pick_next(16);
    ++picked;
    ++by_place[static_cast<size_t>(call % 16)];
  }
  EXPECT_NEAR(picked, 10'000, 500);
  for (const int times : by_place) EXPECT_NEAR(times, picked / 16, 150);
}

TEST(ShadowSampler, picks_each_call_if_asked_to) {
  ShadowSampler sampler(7);
  for (int call = 0; call < 100; ++call) {
    EXPECT_TRUE(sampler.due());
    sampler.pick_next(1);
  }
}

TEST(ShadowQueue, grants_a_call_a_sixteenth_of_the_memory_and_at_least_1_mb) {
  constexpr size_t kMb = size_t{1} << 20;
  EXPECT_EQ(most_bytes_of_call(kMb), kMb);
  EXPECT_EQ(most_bytes_of_call(16 * kMb), kMb);
  EXPECT_EQ(most_bytes_of_call(256 * kMb), 16 * kMb);
}

TEST(ShadowQueue, grants_memory_up_to_its_limit_and_takes_it_back) {
  ShadowQueue queue;
  EXPECT_FALSE(queue.take_room(1, 60, 100));
  EXPECT_EQ(queue.take_room(1, 41, 100), ShadowSkip::memory);
  EXPECT_FALSE(queue.take_room(2, 40, 100));
  queue.give_back(1, 60);
  EXPECT_FALSE(queue.take_room(2, 60, 100));
  EXPECT_EQ(queue.take_room(3, 101, 100), ShadowSkip::memory);
}

TEST(ShadowQueue, limits_the_waiting_calls_of_one_implementation) {
  ShadowQueue queue;
  for (uint32_t i = 0; i < ShadowQueue::kMostOfOne; ++i) EXPECT_FALSE(queue.take_room(1, 1, 1000));
  EXPECT_EQ(queue.take_room(1, 1, 1000), ShadowSkip::busy);
  EXPECT_FALSE(queue.take_room(2, 1, 1000));
  queue.give_back(1, 1);
  EXPECT_FALSE(queue.take_room(1, 1, 1000));
}

}  // namespace
}  // namespace opmux::shadow
