#include "dispatch/call/thread_workspace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <latch>
#include <set>
#include <thread>

#include "dispatch/call/thread_block.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using std::chrono::seconds;

Options without_a_thread() {
  Options options = bare();
  options.sources.own_thread = false;
  return options;
}

/// Bytes of the buffer of the calling thread.
uint64_t buffer_size() { return dispatch::own_thread_block().workspace.size(); }

/// An implementation that asks for as many kilobytes as its int argument says and writes all of
/// them.
struct KilobyteKernel {
  int asked = 0;
  void* at = nullptr;
  std::function<void()> inside = [] {};

  static KilobyteKernel& of(void* self) { return *static_cast<KilobyteKernel*>(self); }
  static uint64_t workspace(void* self, const opmux_call* call) {
    ++of(self).asked;
    return static_cast<uint64_t>(call->args[2].value.i64) << 10;
  }
  static int32_t run(void* self, const opmux_call* call) {
    of(self).at = call->workspace;
    if (call->workspace_size != 0) std::memset(call->workspace, 1, call->workspace_size);
    of(self).inside();
    // The sanitizers report a workspace that was freed meanwhile.
    if (call->workspace_size != 0) std::memset(call->workspace, 2, call->workspace_size);
    return OPMUX_OK;
  }
};

struct ThreadWorkspaceLifetime : testing::Test {
  /// Calls with a workspace of `kilobytes`. Each of the `rows` from 1 to 16 has a separate plan.
  void call(int kilobytes, int64_t rows = 1) {
    const Rows t(rows);
    const uint64_t before = stage.stats("scratch/acme.v1").calls;
    EXPECT_TRUE(op(t.y, t.x, kilobytes).ok());
    EXPECT_EQ(stage.stats("scratch/acme.v1").calls, before + 1);
  }
  /// Runs the maintenance a minute later than the last time.
  void minute_later() { stage.runtime.tick(now += seconds(61)); }

  Stage stage{without_a_thread()};
  Operator op = stage.define("scratch(out Tensor y[..., H], Tensor x[..., H], int kilobytes)");
  KilobyteKernel kernel;
  Registration held = stage.runtime
                          .implement({.id = "scratch/acme.v1",
                                      .vendor = "acme",
                                      .kernel = {.user_data = &kernel,
                                                 .run = KilobyteKernel::run,
                                                 .workspace = KilobyteKernel::workspace}})
                          .value();
  seconds now{1'000'000};
};

/// Runs `body` on a new thread, which has no buffer yet.
void on_a_new_thread(const std::function<void()>& body) { std::thread(body).join(); }

TEST_F(ThreadWorkspaceLifetime, one_buffer_of_at_most_twice_the_largest_request) {
  const auto in_order = [&](auto&& kilobytes_of) {
    on_a_new_thread([&] {
      uint64_t largest = 0;
      std::set<void*> places;
      for (int i = 0; i < 300; ++i) {
        const int kilobytes = kilobytes_of(i);
        largest = std::max(largest, static_cast<uint64_t>(kilobytes) << 10);
        call(kilobytes, 1 + i % 16);
        places.insert(kernel.at);
        EXPECT_GE(buffer_size(), largest);
        EXPECT_LE(buffer_size(), 2 * largest);
      }
      EXPECT_LE(places.size(), 10u) << "300 requests are 9 doublings";
    });
  };
  in_order([](int i) { return i + 1; });
  in_order([](int i) { return 300 - i; });
  in_order([](int i) { return 1 + i * 7919 % 300; });
}

TEST_F(ThreadWorkspaceLifetime, a_plan_follows_the_buffer_when_another_plan_moves_it) {
  on_a_new_thread([&] {
    for (int i = 0; i < 3; ++i) call(1, 1);
    void* const first = kernel.at;
    call(512, 2);
    void* const moved = kernel.at;
    call(1, 1);
    EXPECT_EQ(kernel.at, moved) << "the buffer was at " << first;
    const int before = kernel.asked;
    for (int i = 0; i < 5; ++i) call(1, 1);
    EXPECT_EQ(kernel.asked, before) << "the plan asks once per move";
  });
}

TEST_F(ThreadWorkspaceLifetime, the_maintenance_frees_the_buffer_of_an_idle_thread) {
  std::latch called(1), freed(1);
  std::thread thread([&] {
    call(64);
    called.count_down();
    freed.wait();
    EXPECT_EQ(buffer_size(), 0u);
    call(64);
    EXPECT_EQ(buffer_size(), 64u << 10);
  });
  called.wait();
  for (int i = 0; i < 3; ++i) minute_later();
  freed.count_down();
  thread.join();
}

TEST_F(ThreadWorkspaceLifetime, a_buffer_in_use_stays_and_costs_one_question_a_minute) {
  on_a_new_thread([&] {
    call(64);
    void* const first = kernel.at;
    const int before = kernel.asked;
    for (int i = 0; i < 10; ++i) {
      minute_later();
      for (int k = 0; k < 3; ++k) call(64);
      EXPECT_EQ(kernel.at, first);
    }
    EXPECT_LE(kernel.asked, before + 10);
    EXPECT_GT(kernel.asked, before) << "it could not be freed otherwise";
  });
}

TEST_F(ThreadWorkspaceLifetime, no_buffer_is_freed_under_a_running_kernel) {
  const auto three_minutes = [&] {
    for (int i = 0; i < 3; ++i) minute_later();
    EXPECT_GE(buffer_size(), 64u << 10);
  };
  on_a_new_thread([&] {
    call(64);  // The job starts.
    kernel.inside = three_minutes;
    call(64);
    call(100, 2);
    kernel.inside = [] {};
    for (int i = 0; i < 3; ++i) minute_later();
    EXPECT_EQ(buffer_size(), 0u) << "the thread runs no call any more";
  });
}

TEST_F(ThreadWorkspaceLifetime, a_buffer_that_is_too_large_shrinks) {
  on_a_new_thread([&] {
    call(4096);
    for (int i = 0; i < 3; ++i) {
      minute_later();
      call(4);
    }
    EXPECT_LE(buffer_size(), 8u << 10);
    EXPECT_GE(buffer_size(), 4u << 10);
  });
}

TEST_F(ThreadWorkspaceLifetime, a_kernel_without_memory_frees_the_buffers_of_idle_threads) {
  std::latch called(1), freed(1);
  std::thread thread([&] {
    call(64);
    called.count_down();
    freed.wait();
    EXPECT_EQ(buffer_size(), 0u);
    call(64);
  });
  called.wait();
  const Operator copy = stage.define(kCopy);
  int runs = 0;
  stage.add({.id = "copy/plain.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               return ++runs == 1 ? Outcome::resource : Outcome::ok;
             }});
  const Rows t;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copy(t.y, t.x).ok()); }), "copy/plain.one copy/plain.one");
  freed.count_down();
  thread.join();
}

/// A kernel for several threads at a time: it writes all of its workspace and records nothing.
KernelFunctions shared_kernel() {
  return {.run =
              [](void*, const opmux_call* call) {
                std::memset(call->workspace, 3, call->workspace_size);
                return int32_t{OPMUX_OK};
              },
          .workspace =
              [](void*, const opmux_call* call) {
                return static_cast<uint64_t>(call->args[2].value.i64) << 10;
              }};
}

TEST_F(ThreadWorkspaceLifetime, threads_call_while_the_maintenance_revokes) {
  const Registration shared = stage.runtime
                                  .implement({.id = "scratch/other.v1",
                                              .vendor = "other",
                                              .priority = 900,
                                              .kernel = shared_kernel()})
                                  .value();
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> calls{0}, wrong{0};
  const auto body = [&](int seed) {
    for (int i = seed; !ending.load(); ++i) {
      const Rows t(1 + i % 4);
      if (!op(t.y, t.x, 1 + i * 31 % 40).ok()) ++wrong;
      ++calls;
    }
  };
  std::thread one([&] { body(1); }), two([&] { body(2); });
  uint64_t ticks = 0;
  for (; calls < 20'000 || ticks < 300; ++ticks) minute_later();
  ending = true;
  one.join();
  two.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(stage.stats("scratch/other.v1").calls, calls);
}

}  // namespace
}  // namespace opmux::test
