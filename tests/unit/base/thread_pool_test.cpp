#include "base/thread_pool.hpp"

#include <signal.h>

#include <atomic>
#include <cfenv>
#include <filesystem>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "forked.hpp"

namespace opmux::base {
namespace {

template <class Body>
void loop(void* lent, int64_t count, Body body) {
  ThreadPool::parallel_for(lent, count, &body,
                           [](void* context, int64_t i) { (*static_cast<Body*>(context))(i); });
}

// No piece ends before each of them has a thread.
void meet(ThreadPool& pool, int threads) {
  std::latch all(threads);
  loop(pool.lend(threads), threads, [&](int64_t) { all.arrive_and_wait(); });
}

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(ThreadPool, runs_every_index_once_and_returns_when_all_have_returned) {
  ThreadPool pool(4);
  for (const int64_t count : {0, 1, 2, 3, 7, 1000}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<int> runs(static_cast<size_t>(count));
      loop(pool.lend(4), count, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
      ASSERT_EQ(runs, std::vector<int>(static_cast<size_t>(count), 1)) << count;
    }
  }
}

TEST(ThreadPool, starts_its_threads_with_the_first_loop_for_several_and_ends_them) {
  // ThreadSanitizer starts an internal thread with the first thread of a process, and a joined
  // thread may be visible for a moment.
  std::jthread([] {}).join();
  int64_t before = threads_of_process();
  for (int64_t now = 0; (now = threads_of_process()) != before;) before = now;
  {
    ThreadPool pool(3);
    loop(pool.lend(1), 100, [](int64_t) {});
    loop(pool.lend(3), 1, [](int64_t) {});
    EXPECT_EQ(threads_of_process(), before);
    meet(pool, 3);
    meet(pool, 3);
    EXPECT_EQ(threads_of_process(), before + 2);
  }
  EXPECT_EQ(threads_of_process(), before);
}

TEST(ThreadPool, wakes_threads_that_went_to_sleep) {
  ThreadPool pool(2);
  meet(pool, 2);
  std::jthread([] {
    for (volatile int i = 0; i < 3'000'000;) i = i + 1;
  }).join();
  meet(pool, 2);
}

TEST(ThreadPool, uses_no_more_threads_than_a_loop_asks_for) {
  ThreadPool pool(4);
  meet(pool, 4);
  for (int round = 0; round < 200; ++round) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    loop(pool.lend(2), 50, [&](int64_t) {
      const std::scoped_lock lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    ASSERT_LE(seen.size(), 2u);
  }
}

TEST(ThreadPool, a_loop_inside_a_loop_stays_on_its_thread) {
  ThreadPool pool(3);
  std::atomic<int> elsewhere{0}, pieces{0};
  loop(pool.lend(3), 3, [&](int64_t) {
    const std::thread::id here = std::this_thread::get_id();
    loop(pool.lend(3), 20, [&](int64_t) {
      ++pieces;
      elsewhere += std::this_thread::get_id() != here;
    });
  });
  EXPECT_EQ(pieces, 60);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ThreadPool, a_caller_that_finds_the_threads_busy_loops_alone) {
  ThreadPool pool(2);
  std::atomic<int> elsewhere{0};
  loop(pool.lend(2), 2, [&](int64_t i) {
    if (i > 0) return;
    std::jthread([&] {
      const std::thread::id here = std::this_thread::get_id();
      loop(pool.lend(2), 100, [&](int64_t) { elsewhere += std::this_thread::get_id() != here; });
    }).join();
  });
  EXPECT_EQ(elsewhere, 0);
}

TEST(ThreadPool, serves_many_callers_at_once) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&] {
        for (int round = 0; round < 300; ++round)
          loop(pool.lend(3), 9, [&](int64_t i) { sum += i; });
      });
    }
  }
  EXPECT_EQ(sum, 4 * 300 * 36);
}

TEST(ThreadPool, takes_no_signals_from_the_program) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> blocked{0};
  std::latch both(2);
  loop(pool.lend(2), 2, [&](int64_t) {
    both.arrive_and_wait();
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    if (std::this_thread::get_id() != caller) blocked = sigismember(&mask, SIGTERM);
  });
  EXPECT_EQ(blocked, 1);
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

TEST(ThreadPool, restores_the_floating_point_mode_of_its_threads_after_each_loop) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::latch all(3);
    std::atomic<int> changed{0};
    loop(pool.lend(3), 3, [&](int64_t) {
      if (std::fegetround() != FE_TONEAREST) ++changed;
      std::fesetround(FE_UPWARD);
      all.arrive_and_wait();
    });
    std::fesetround(FE_TONEAREST);  // of the calling thread, which opmux restores after the kernel
    EXPECT_EQ(changed, 0) << "in round " << round;
  }
}

TEST(ThreadPool, a_forked_child_gets_new_threads) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child of a process that has some";
#endif
#endif
  auto pool = std::make_unique<ThreadPool>(2);
  meet(*pool, 2);
  EXPECT_TRUE(test::true_in_forked_child([&] {
    meet(*pool, 2);
    meet(*pool, 2);
    pool.reset();
    return true;
  }));
  // Also if it was forked while the threads were busy.
  bool right = false;
  loop(pool->lend(2), 2, [&](int64_t i) {
    if (i > 0) return;
    std::jthread([&] {
      right = test::true_in_forked_child([&] {
        meet(*pool, 2);
        return true;
      });
    }).join();
  });
  EXPECT_TRUE(right);
  EXPECT_TRUE(test::true_in_forked_child([&] {
    pool.reset();  // Its threads do not exist in the child.
    return true;
  }));
  meet(*pool, 2);
}

TEST(ThreadPool, has_one_thread_per_processor_but_not_more_than_eight) {
  EXPECT_GE(ThreadPool::default_threads(), 1);
  EXPECT_LE(ThreadPool::default_threads(), 8);
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(5).threads(), 5);
}

}  // namespace
}  // namespace opmux::base
