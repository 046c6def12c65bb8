#include <sys/file.h>

#include <cerrno>

#include "base/system/files.hpp"
#include "temporary_folder.hpp"

namespace opmux::base {
namespace {

constexpr uint64_t kMicrosecond = 1'000, kMillisecond = 1'000'000;

/// A clock that advances by the same step at each reading.
class SteppingClock final : public Clock {
 public:
  explicit SteppingClock(uint64_t step_ns) : step_ns_(step_ns) {}
  uint64_t now_ns() const override {
    ++readings;
    return now_ns_ += step_ns_;
  }
  mutable int readings = 0;

 private:
  const uint64_t step_ns_;
  mutable uint64_t now_ns_ = 0;
};

/// The clock of the machine, which counts its readings.
class CountingClock final : public Clock {
 public:
  uint64_t now_ns() const override {
    ++readings;
    return SteadyClock().now_ns();
  }
  mutable int readings = 0;
};

struct FileLockLifetime : testing::Test {
  const test::TemporaryFolder folder;
  const std::string path = folder.at("lock");
};

TEST_F(FileLockLifetime, gives_up_at_the_deadline_of_the_clock_if_pauses_take_long) {
  const FileLock holder(path, 0);
  ASSERT_TRUE(holder);
  const SteppingClock clock(25 * kMillisecond);
  const FileLock lock(path, 100, clock);
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_FALSE(lock);
  EXPECT_EQ(clock.readings, 5) << "one at the start, then one per try until 100 ms have passed";
}

TEST_F(FileLockLifetime, continues_until_the_deadline_of_the_clock_if_pauses_are_short) {
  const FileLock holder(path, 0);
  ASSERT_TRUE(holder);
  const SteppingClock clock(100 * kMicrosecond);
  EXPECT_FALSE(FileLock(path, 2, clock));
  EXPECT_EQ(clock.readings, 21);
}

TEST_F(FileLockLifetime, tries_less_often_the_longer_it_waits) {
  const FileLock holder(path, 0);
  ASSERT_TRUE(holder);
  const CountingClock clock;
  EXPECT_FALSE(FileLock(path, 200, clock));
  EXPECT_LE(clock.readings, 20) << "pauses of 1, 2, 4, 8 and then 16 ms";
}

TEST_F(FileLockLifetime, tries_once_without_a_time_and_takes_a_free_lock) {
  const SteppingClock clock(kMillisecond);
  {
    const FileLock holder(path, 0, clock);
    ASSERT_TRUE(holder);
    const int before = clock.readings;
    EXPECT_FALSE(FileLock(path, 0, clock));
    EXPECT_EQ(clock.readings, before + 2);
  }
  EXPECT_TRUE(FileLock(path, 0, clock));
  EXPECT_FALSE(FileLock(folder.at("missing/lock"), 0, clock));
}

}  // namespace
}  // namespace opmux::base
