#include "registry/backend.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "forked.hpp"

namespace opmux::registry {
namespace {

using test::true_in_forked_child;

BackendDraft draft(uint32_t flags = 0) {
  BackendDraft draft;
  draft.name = "acme";
  draft.vendor = "acme";
  draft.flags = flags;
  return draft;
}

TEST(Backend, without_a_probe_is_available) {
  const Backend backend(draft());
  EXPECT_TRUE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(), "");
}

TEST(Backend, is_not_probed_before_the_first_query) {
  int probes = 0;
  BackendDraft lazy = draft();
  lazy.probe = [&]() -> std::optional<std::string> { return ++probes, "no driver"; };
  const Backend backend(std::move(lazy));
  EXPECT_EQ(backend.unavailable_reason(), "");
  EXPECT_EQ(probes, 0);
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(), "no driver");
  EXPECT_EQ(probes, 1);
}

TEST(Backend, is_probed_once_by_eight_threads_that_ask_together) {
  std::atomic<int> probes{0}, ready{0}, available{0};
  BackendDraft once = draft();
  once.probe = [&]() -> std::optional<std::string> {
    // Gives the other threads time to arrive without sleeping.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    ++probes;
    return std::nullopt;
  };
  const Backend backend(std::move(once));
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (++ready; ready < 8;) std::this_thread::yield();
        available += backend.available() ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(probes, 1);
  EXPECT_EQ(available, 8);
}

TEST(Backend, whose_probe_throws_is_unavailable_with_that_text) {
  BackendDraft throwing = draft();
  throwing.probe = []() -> std::optional<std::string> { throw std::runtime_error("driver 3.1"); };
  const Backend backend(std::move(throwing));
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.unavailable_reason(), "its probe threw: driver 3.1");
}

TEST(Backend, whose_probe_throws_a_number_is_unavailable_too) {
  BackendDraft throwing = draft();
  throwing.probe = []() -> std::optional<std::string> { throw 7; };
  const Backend backend(std::move(throwing));
  EXPECT_FALSE(backend.available());
  EXPECT_NE(backend.unavailable_reason(), "");
}

TEST(Backend, enabled_and_available_are_two_things) {
  BackendDraft absent = draft();
  absent.probe = []() -> std::optional<std::string> { return "absent"; };
  Backend backend(std::move(absent));
  EXPECT_TRUE(backend.enabled());
  EXPECT_FALSE(backend.available());
  backend.set_enabled(false);
  EXPECT_FALSE(backend.enabled());

  Backend off(draft(OPMUX_BACKEND_DEFAULT_OFF));
  EXPECT_FALSE(off.enabled());
  EXPECT_TRUE(off.available());
  off.set_enabled(true);
  EXPECT_TRUE(off.enabled());
}

TEST(Backend, priority_is_its_kinds_own_unless_set) {
  BackendDraft reference = draft();
  reference.kind = Kind::reference;
  EXPECT_EQ(Backend(reference).priority(), 50);
  reference.priority = 0;
  EXPECT_EQ(Backend(reference).priority(), 0);
}

TEST(Backend, that_says_reinit_is_asked_again_in_a_child_and_others_are_not) {
  for (const bool reinit : {true, false}) {
    std::string state = "works";
    BackendDraft asked = draft(reinit ? OPMUX_BACKEND_FORK_REINIT : 0);
    asked.probe = [&]() -> std::optional<std::string> {
      return state == "works" ? std::nullopt : std::optional(state);
    };
    const Backend backend(std::move(asked));
    ASSERT_TRUE(backend.available());
    state = "gone";
    EXPECT_TRUE(backend.available());
    EXPECT_TRUE(true_in_forked_child([&] {
      return backend.available() != reinit &&
             backend.unavailable_reason() == (reinit ? "gone" : "");
    })) << reinit;
  }
}

TEST(Backend, can_be_probed_in_a_child_forked_while_a_thread_was_probing) {
  std::atomic<int> stage{0};
  BackendDraft slow = draft();
  slow.probe = [&]() -> std::optional<std::string> {
    if (stage == 2) return std::nullopt;
    stage = 1;
    stage.notify_all();
    stage.wait(1);
    return std::nullopt;
  };
  const Backend backend(std::move(slow));
  const std::jthread prober([&] { (void)backend.available(); });
  stage.wait(0);
  EXPECT_TRUE(true_in_forked_child([&] {
    stage = 2;
    return backend.available();
  }));
  stage = 2;
  stage.notify_all();
}

TEST(Backend, once_used_is_lost_by_fork_if_it_says_so) {
  const Backend lost(draft(OPMUX_BACKEND_FORK_LOST)), safe(draft());
  EXPECT_TRUE(true_in_forked_child([&] { return !lost.lost_by_fork(); })) << "not used yet";
  lost.mark_used();
  safe.mark_used();
  EXPECT_FALSE(lost.lost_by_fork());
  EXPECT_TRUE(true_in_forked_child([&] {
    lost.mark_used();
    return lost.lost_by_fork() && !safe.lost_by_fork();
  }));
}

}  // namespace
}  // namespace opmux::registry
