#include "base/event_log.hpp"

#include <thread>
#include <vector>

namespace opmux::base {
namespace {

constexpr auto kMakeText = [] { return std::string("because"); };

TEST(EventLog, logs_each_distinct_event_once_and_counts_the_rest) {
  std::vector<Event> told;
  EventLog log([&](const Event& event) { told.push_back(event); });
  for (int i = 0; i < 3; ++i) log.tell(Level::warning, "a.b", "op", "op/x.y", "why", kMakeText);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].level, Level::warning);
  EXPECT_EQ(told[0].code, "a.b");
  EXPECT_EQ(told[0].op, "op");
  EXPECT_EQ(told[0].impl, "op/x.y");
  EXPECT_EQ(told[0].text, "because");
  ASSERT_EQ(told[0].fields.size(), 1u);
  EXPECT_EQ(told[0].fields[0].first, "reason");
  EXPECT_EQ(told[0].fields[0].second, "why");
  EXPECT_EQ(log.count("a.b", "op", "op/x.y", "why"), 3u);
  EXPECT_EQ(log.suppressed(), 2u);
  EXPECT_EQ(log.count("a.b", "op", "op/x.y", "other"), 0u);
}

TEST(EventLog, distinguishes_code_operator_implementation_and_reason) {
  int told = 0;
  EventLog log([&](const Event&) { ++told; });
  log.tell(Level::info, "a", "b", "c", "d", kMakeText);
  log.tell(Level::info, "x", "b", "c", "d", kMakeText);
  log.tell(Level::info, "a", "x", "c", "d", kMakeText);
  log.tell(Level::info, "a", "b", "x", "d", kMakeText);
  log.tell(Level::info, "a", "b", "c", "x", kMakeText);
  log.tell(Level::info, "ab", "", "c", "d", kMakeText);
  EXPECT_EQ(told, 6);
}

TEST(EventLog, formats_no_text_without_a_listener) {
  int made = 0;
  EventLog log({});
  log.tell(Level::info, "a", "", "", "", [&] { return ++made, std::string(); });
  EXPECT_EQ(made, 0);
  EXPECT_EQ(log.count("a", "", "", ""), 0u) << "an event that no one receives is not remembered";
}

TEST(EventLog, a_listener_may_log_an_event) {
  EventLog* self = nullptr;
  int told = 0;
  EventLog log([&](const Event& event) {
    ++told;
    if (event.code == "outer") self->tell(Level::info, "inner", "", "", "", kMakeText);
  });
  self = &log;
  log.tell(Level::info, "outer", "", "", "", kMakeText);
  EXPECT_EQ(told, 2);
}

TEST(EventLog, equal_events_of_several_threads_are_logged_once) {
  std::atomic<int> told{0};
  EventLog log([&](const Event&) { ++told; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n)
        log.tell(Level::info, "a", "", "", std::to_string(n), kMakeText);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 100);
  EXPECT_EQ(log.suppressed(), 300u);
}

TEST(StderrSink, writes_one_line_for_what_is_important_enough) {
  const EventSink sink = stderr_sink(Level::warning);
  testing::internal::CaptureStderr();
  sink({Level::info, "not.told", "op", "op/x.y", "quiet"});
  sink({Level::warning, "a.b", "op", "op/x.y", "first"});
  sink({Level::error, "c.d", "op", "", "second"});
  sink({Level::error, "e.f", "", "", "third \x1b[31m"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "opmux warning a.b op/x.y: first\nopmux error c.d op: second\n"
            "opmux error e.f: third \\x1b[31m\n");
}

TEST(Level, has_a_word) {
  EXPECT_EQ(name_of(Level::debug), "debug");
  EXPECT_EQ(name_of(Level::info), "info");
  EXPECT_EQ(name_of(Level::warning), "warning");
  EXPECT_EQ(name_of(Level::error), "error");
  EXPECT_EQ(name_of(static_cast<Level>(9)), "unknown");
}

}  // namespace
}  // namespace opmux::base
