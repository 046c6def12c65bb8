#include "policy/files/policy_file_watcher.hpp"

namespace opmux::policy {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(Debounce, waits_until_it_has_been_quiet) {
  Debounce debounce;
  EXPECT_EQ(debounce.due(), Debounce::kIdle);
  debounce.note(1000 * kMs);
  EXPECT_EQ(debounce.due(), 1050 * kMs);
  debounce.note(1040 * kMs);
  EXPECT_EQ(debounce.due(), 1090 * kMs);
  debounce.clear();
  EXPECT_EQ(debounce.due(), Debounce::kIdle);
}

TEST(Debounce, never_waits_longer_than_a_quarter_of_a_second_after_the_first_change) {
  Debounce debounce;
  for (uint64_t at = 1000; at <= 1240; at += 40) debounce.note(at * kMs);
  EXPECT_EQ(debounce.due(), 1250 * kMs);
}

TEST(Debounce, waits_for_the_maximum_time_while_a_writer_is_active) {
  Debounce debounce;
  debounce.note(1000 * kMs);
  EXPECT_EQ(debounce.due(true), 1250 * kMs);
}

}  // namespace
}  // namespace opmux::policy
