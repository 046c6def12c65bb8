#include "base/maintenance.hpp"

#include <sys/eventfd.h>

#include "forked.hpp"

namespace opmux::base {
namespace {

/// A clock that the test sets.
class SetClock final : public Clock {
 public:
  uint64_t now_ns() const override { return now.load(); }
  std::atomic<uint64_t> now{1000};
};

struct Recorder {
  std::vector<uint64_t> runs;
  uint64_t every = 100;
  int descriptor = -1;
};

class RecordingJob final : public Maintenance::Job {
 public:
  explicit RecordingJob(Recorder& recorder) : recorder_(recorder) {}
  uint64_t run(uint64_t now_ns) override {
    recorder_.runs.push_back(now_ns);
    return recorder_.every == Maintenance::kNever ? recorder_.every : now_ns + recorder_.every;
  }
  int descriptor() const override { return recorder_.descriptor; }

 private:
  Recorder& recorder_;
};

Maintenance::MakeJob job(Recorder& recorder) {
  return [&recorder] { return std::make_unique<RecordingJob>(recorder); };
}

TEST(Maintenance, runs_jobs_when_they_are_due) {
  const SetClock clock;
  Maintenance maintenance(clock, false);
  Recorder often{.runs = {}, .every = 100}, seldom{.runs = {}, .every = 250};
  maintenance.add(job(often));
  maintenance.add(job(seldom));
  for (uint64_t now = 1000; now <= 1300; now += 50) maintenance.tick(now);
  EXPECT_THAT(often.runs, testing::ElementsAre(1000, 1100, 1200, 1300));
  EXPECT_THAT(seldom.runs, testing::ElementsAre(1000, 1250));
}

TEST(Maintenance, runs_a_job_whose_descriptor_is_ready) {
  const SetClock clock;
  Maintenance maintenance(clock, false);
  const Descriptor event(::eventfd(0, EFD_NONBLOCK));
  Recorder waiting{.runs = {}, .every = Maintenance::kNever, .descriptor = event.get()};
  maintenance.add(job(waiting));
  maintenance.tick(1000);
  maintenance.tick(2000);
  EXPECT_THAT(waiting.runs, testing::ElementsAre(1000));
  const uint64_t one = 1;
  ASSERT_EQ(::write(event.get(), &one, sizeof(one)), 8);
  maintenance.tick(3000);
  EXPECT_THAT(waiting.runs, testing::ElementsAre(1000, 3000));
}

TEST(WokenJob, is_added_by_the_first_wake_and_runs_after_each) {
  const SetClock clock;
  std::vector<uint64_t> runs;
  int made = 0;
  Maintenance maintenance(clock, false);
  WokenJob woken(maintenance, [&] {
    ++made;
    return [&](uint64_t now_ns) {
      runs.push_back(now_ns);
      return now_ns == 3000 ? 4000 : Maintenance::kNever;
    };
  });
  maintenance.tick(1000);
  EXPECT_EQ(made, 0);
  woken.wake();
  maintenance.tick(2000);
  maintenance.tick(2500);
  woken.wake();
  woken.wake();
  maintenance.tick(3000);
  maintenance.tick(3500);
  maintenance.tick(4000);
  maintenance.tick(5000);
  EXPECT_THAT(runs, testing::ElementsAre(2000, 3000, 4000));
  EXPECT_EQ(made, 1);
}

/// Counts its runs, so that a thread can wait for them.
class CountingJob final : public Maintenance::Job {
 public:
  explicit CountingJob(std::atomic<int>& runs) : runs_(runs) {}
  uint64_t run(uint64_t now_ns) override {
    runs_.fetch_add(1);
    runs_.notify_all();
    return now_ns + 1'000'000;
  }

 private:
  std::atomic<int>& runs_;
};

void wait_for_more(const std::atomic<int>& runs, int than) {
  for (int seen = runs.load(); seen <= than; seen = runs.load()) runs.wait(seen);
}

TEST(Maintenance, has_a_thread_from_the_first_job_on_and_until_it_is_stopped) {
  const SteadyClock clock;
  std::atomic<int> runs{0};
  Maintenance maintenance(clock, true);
  maintenance.add([&] { return std::make_unique<CountingJob>(runs); });
  wait_for_more(runs, 3);
  maintenance.stop();
  const int last = runs.load();
  EXPECT_EQ(runs.load(), last);
}

TEST(Maintenance, starts_its_thread_again_in_a_forked_child) {
  if (test::under_thread_sanitizer()) GTEST_SKIP() << "it cannot follow threads of a child";
  const SteadyClock clock;
  std::atomic<int> runs{0}, made{0};
  Maintenance maintenance(clock, true);
  maintenance.add([&] {
    ++made;
    return std::make_unique<CountingJob>(runs);
  });
  wait_for_more(runs, 0);
  EXPECT_TRUE(test::true_in_forked_child([&] {
    const int before = runs.load();
    maintenance.revive();
    wait_for_more(runs, before);
    maintenance.stop();
    return made.load() == 2;
  }));
  maintenance.revive();
  EXPECT_EQ(made.load(), 1);
}

}  // namespace
}  // namespace opmux::base
