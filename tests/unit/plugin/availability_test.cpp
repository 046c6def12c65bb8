#include "plugin/open/availability.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/no_callback.hpp"

namespace opmux::plugin {
namespace {

using std::chrono::milliseconds;

/// A probe that returns when the test ends.
struct Hanging {
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false, returned = false;

  std::optional<std::string> wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return released; });
    returned = true;
    changed.notify_all();
    return std::nullopt;
  }
  void release() {
    std::unique_lock lock(mutex);
    released = true;
    changed.notify_all();
    changed.wait(lock, [&] { return returned; });
  }
};

registry::BackendDraft draft_with(std::function<std::optional<std::string>()> probe) {
  registry::BackendDraft draft;
  draft.name = "acme";
  draft.vendor = "acme";
  draft.probe = std::move(probe);
  return draft;
}

TEST(Availability, a_probe_that_hangs_makes_the_backend_unavailable_at_the_deadline) {
  const auto hanging = std::make_shared<Hanging>();
  registry::BackendDraft draft = draft_with([hanging] { return hanging->wait(); });
  watch_availability(draft, milliseconds(20));
  const registry::Backend backend(draft);
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(),
            "its is_available function did not return within 20 ms; the backend is left out until "
            "the process ends");
  hanging->release();
  EXPECT_FALSE(backend.available()) << "a late answer does not count";
}

TEST(Availability, a_hanging_probe_keeps_its_plugin_loaded) {
  const auto hanging = std::make_shared<Hanging>();
  auto code = std::make_shared<int>(0);
  const std::weak_ptr<int> loaded = code;
  {
    registry::BackendDraft draft = draft_with([hanging] { return hanging->wait(); });
    draft.owner = std::move(code);
    watch_availability(draft, milliseconds(1));
    const registry::Backend backend(std::move(draft));
    EXPECT_FALSE(backend.available());
  }
  EXPECT_FALSE(loaded.expired());
  hanging->release();
}

TEST(Availability, an_answer_in_time_counts) {
  registry::BackendDraft yes = draft_with([] { return std::nullopt; });
  watch_availability(yes);
  EXPECT_TRUE(registry::Backend(yes).available());
  registry::BackendDraft no = draft_with([] { return "no device"; });
  watch_availability(no);
  const registry::Backend backend(no);
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(), "no device");
}

TEST(Availability, an_exception_makes_the_backend_unavailable) {
  registry::BackendDraft draft =
      draft_with([]() -> std::optional<std::string> { throw std::runtime_error("no driver"); });
  watch_availability(draft);
  const registry::Backend backend(draft);
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(), "its probe threw: no driver");
}

TEST(Availability, a_probe_without_memory_is_asked_again) {
  int asked = 0;
  registry::BackendDraft draft = draft_with([&]() -> std::optional<std::string> {
    if (++asked == 1) throw std::bad_alloc();
    return std::nullopt;
  });
  watch_availability(draft);
  const registry::Backend backend(draft);
  EXPECT_THROW((void)backend.available(), std::bad_alloc);
  EXPECT_TRUE(backend.available());
}

TEST(Availability, a_probe_that_asks_for_its_answer_gets_no) {
  const registry::Backend* asked = nullptr;
  bool answer = true;
  registry::BackendDraft draft = draft_with([&]() -> std::optional<std::string> {
    answer = asked->available();
    EXPECT_EQ(base::refuse_callback().reason(), "runtime.callback");
    return std::nullopt;
  });
  watch_availability(draft);
  const registry::Backend backend(draft);
  asked = &backend;
  EXPECT_TRUE(backend.available());
  EXPECT_FALSE(answer);
}

TEST(Availability, a_quarantined_backend_is_not_asked) {
  const std::string why = "a process ended in its is_available function";
  bool called = false;
  registry::BackendDraft draft = draft_with([&]() -> std::optional<std::string> {
    called = true;
    return std::nullopt;
  });
  const registry::Backend backend(draft);
  backend.quarantined().store(&why);
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(), why);
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace opmux::plugin
