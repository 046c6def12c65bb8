#include <map>
#include <string>

#include "base/event_log.hpp"

namespace opmux::base {
namespace {

constexpr auto kMakeText = [] { return std::string("because"); };

/// A log that counts how often each event arrives.
struct CountedLog {
  explicit CountedLog(Level least = Level::debug)
      : log(
            [this](const Event& event) {
              ++arrived[event.code + " " + event.impl +
                        (event.fields.empty() ? "" : " " + event.fields[0].second)];
            },
            least) {}
  void tell(Level level, const std::string& code, size_t number) {
    log.tell(level, code, "op", std::to_string(number), "", kMakeText);
  }
  int times(const std::string& code, size_t number) {
    return arrived[code + " " + std::to_string(number)];
  }
  std::map<std::string, int> arrived;
  EventLog log;
};

TEST(EventsLog, every_error_and_warning_of_9600_implementations_arrives_once) {
  constexpr size_t kImplementations = 300 * 32;
  CountedLog counted;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < kImplementations; ++i) {
      for (const char* reason : {"caps.dtype", "caps.multiple_of", "policy.denied"}) {
        counted.log.tell(Level::debug, "refused", "op", std::to_string(i), reason, kMakeText);
      }
      counted.tell(Level::info, "chosen", i);
      counted.tell(Level::warning, "fell_back", i);
      counted.tell(Level::warning, "opened", i);
      counted.tell(Level::error, "mismatch", i);
    }
  }
  for (size_t i = 0; i < kImplementations; ++i) {
    ASSERT_EQ(counted.times("fell_back", i), 1) << i;
    ASSERT_EQ(counted.times("opened", i), 1) << i;
    ASSERT_EQ(counted.times("mismatch", i), 1) << i;
  }
}

TEST(EventsLog, an_ignored_level_is_not_remembered) {
  CountedLog counted(Level::warning);
  for (size_t i = 0; i < EventLog::kMaxDebugs + 5; ++i) counted.tell(Level::debug, "refused", i);
  counted.tell(Level::info, "chosen", 0);
  counted.log.announce(Level::info, "loaded", [] { return std::string("text"); });
  EXPECT_EQ(counted.log.forgotten(), 0u);
  EXPECT_EQ(counted.log.count("refused", "op", "0", ""), 0u);
  EXPECT_EQ(counted.log.count("chosen", "op", "0", ""), 0u);
  EXPECT_TRUE(counted.arrived.empty());
  counted.tell(Level::warning, "opened", 0);
  counted.log.announce(Level::error, "broken", [] { return std::string("text"); });
  EXPECT_EQ(counted.arrived.size(), 2u);
}

TEST(EventsLog, a_full_level_forgets_the_event_that_occurred_least_recently) {
  CountedLog counted;
  for (size_t i = 0; i < EventLog::kMaxInfos; ++i) counted.tell(Level::info, "a", i);
  counted.tell(Level::info, "a", 0);  // Occurs again, so event 1 is the oldest now.
  EXPECT_EQ(counted.log.forgotten(), 0u);
  counted.tell(Level::info, "a", EventLog::kMaxInfos);
  EXPECT_EQ(counted.times("a", EventLog::kMaxInfos), 1) << "a new event arrives";
  EXPECT_EQ(counted.log.forgotten(), 1u);
  counted.tell(Level::info, "a", 0);
  EXPECT_EQ(counted.times("a", 0), 1);
  EXPECT_EQ(counted.log.count("a", "op", "0", ""), 3u);
  counted.tell(Level::info, "a", 1);
  EXPECT_EQ(counted.times("a", 1), 2) << "a forgotten event arrives again";
}

TEST(EventsLog, new_warnings_and_errors_arrive_when_their_level_is_full) {
  CountedLog counted;
  constexpr size_t kMore = 100;
  for (size_t i = 0; i < EventLog::kMaxErrors + kMore; ++i) counted.tell(Level::error, "e", i);
  for (size_t i = 0; i < EventLog::kMaxWarnings + kMore; ++i) counted.tell(Level::warning, "w", i);
  EXPECT_EQ(counted.arrived.size(), EventLog::kMaxErrors + EventLog::kMaxWarnings + 2 * kMore);
  EXPECT_EQ(counted.log.forgotten(), 2 * kMore);
}

TEST(EventsLog, a_level_displaces_no_event_of_another) {
  CountedLog counted;
  counted.tell(Level::error, "e", 0);
  counted.tell(Level::warning, "w", 0);
  for (size_t i = 0; i < 2 * EventLog::kMaxDebugs; ++i) counted.tell(Level::debug, "d", i);
  counted.tell(Level::error, "e", 0);
  counted.tell(Level::warning, "w", 0);
  EXPECT_EQ(counted.times("e", 0), 1);
  EXPECT_EQ(counted.times("w", 0), 1);
}

TEST(EventsLog, long_texts_are_told_apart_by_their_ends) {
  CountedLog counted;
  const std::string start(100'000, 'x');
  for (int round = 0; round < 2; ++round) {
    counted.log.tell(Level::info, "plugin.log", "", "", start + "a", kMakeText);
    counted.log.tell(Level::info, "plugin.log", "", "", start + "b", kMakeText);
  }
  EXPECT_EQ(counted.arrived.size(), 2u);
  EXPECT_EQ(counted.log.suppressed(), 2u);
}

}  // namespace
}  // namespace opmux::base
