#include <thread>

#include "base/maintenance.hpp"
#include "base/system/clock.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

TEST(PublishedLifetime, a_listener_may_add_listeners_while_it_is_called) {
  Stage stage;
  int called = 0, added = 0;
  for (int i = 0; i < 3; ++i) {
    stage.runtime.policy().on_change([&](const PolicyChange&) {
      ++called;
      for (int j = 0; j < 20; ++j)
        stage.runtime.policy().on_change([&](const PolicyChange&) { ++added; });
    });
  }
  ASSERT_TRUE(stage.runtime.policy().load("opmux: 1\n").ok());
  EXPECT_EQ(called, 3);
  EXPECT_EQ(added, 0) << "a listener that is added hears of the next change";
  ASSERT_TRUE(stage.runtime.policy().load("opmux: 1\nrules: []\n").ok());
  EXPECT_EQ(called, 6);
  EXPECT_EQ(added, 60);
}

TEST(PublishedLifetime, a_validator_may_add_validators_while_it_is_called) {
  Stage stage;
  int called = 0;
  for (int i = 0; i < 3; ++i) {
    stage.runtime.policy().add_validator([&](const Policy&) -> Status {
      ++called;
      for (int j = 0; j < 20; ++j) {
        stage.runtime.policy().add_validator([](const Policy&) { return Status(); });
      }
      return {};
    });
  }
  ASSERT_TRUE(stage.runtime.policy().load("opmux: 1\n").ok());
  EXPECT_EQ(called, 3);
}

/// Counts its runs, and looks for a descriptor before each wait of the thread.
class Counting final : public base::Maintenance::Job {
 public:
  explicit Counting(std::atomic<int>& runs) : runs_(runs) {}
  uint64_t run(uint64_t now_ns) override {
    runs_.fetch_add(1);
    runs_.notify_all();
    return now_ns;
  }

 private:
  std::atomic<int>& runs_;
};

TEST(PublishedLifetime, jobs_are_added_while_the_maintenance_thread_goes_through_them) {
  const base::SteadyClock clock;
  base::Maintenance maintenance(clock, true);
  std::atomic<int> runs{0};
  constexpr int kJobs = 200;
  for (int i = 0; i < kJobs; ++i) {
    const int before = runs.load();
    maintenance.add([&] { return std::make_unique<Counting>(runs); });
    runs.wait(before);
  }
  maintenance.stop();
  EXPECT_GE(runs, kJobs);
}

}  // namespace
}  // namespace opmux::test
