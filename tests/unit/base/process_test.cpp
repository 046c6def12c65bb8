#include "base/system/process.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "forked.hpp"

namespace opmux::base {
namespace {

using test::true_in_forked_child;

TEST(Process, number_is_stable_and_differs_in_a_child_and_in_its_child) {
  const uint64_t mine = process_number();
  EXPECT_GE(mine, 1u);
  EXPECT_EQ(process_number(), mine);
  EXPECT_TRUE(true_in_forked_child([&] {
    const uint64_t child = process_number();
    return child != mine && true_in_forked_child([&] {
             return process_number() != child && process_number() != mine;
           });
  }));
  EXPECT_EQ(process_number(), mine);
}

TEST(Process, handlers_run_in_the_child_only_and_can_be_forgotten) {
  int calls = 0;
  at_fork_in_child([](void* context) { ++*static_cast<int*>(context); }, &calls);
  EXPECT_TRUE(true_in_forked_child([&] { return calls == 1; }));
  EXPECT_EQ(calls, 0);
  forget_fork_handler(&calls);
  EXPECT_TRUE(true_in_forked_child([&] { return calls == 0; }));
}

TEST(ForkMutex, keeps_eight_threads_apart) {
  ForkMutex mutex;
  int64_t sum = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) {
          const std::scoped_lock lock(mutex);
          ++sum;
        }
      });
    }
  }
  EXPECT_EQ(sum, 16000);
}

TEST(ForkMutex, try_lock_fails_while_it_is_held) {
  ForkMutex mutex;
  mutex.lock();
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(ForkMutex, held_by_another_thread_during_fork_is_free_in_the_child) {
  ForkMutex mutex;
  std::atomic<int> stage{0};
  std::jthread holder([&] {
    const std::scoped_lock lock(mutex);
    stage = 1;
    stage.notify_all();
    stage.wait(1);
  });
  stage.wait(0);
  EXPECT_TRUE(true_in_forked_child([&] {
    mutex.lock();
    const bool exclusive = !mutex.try_lock();
    mutex.unlock();
    return exclusive && mutex.try_lock();
  }));
  EXPECT_FALSE(mutex.try_lock());
  stage = 2;
  stage.notify_all();
}

}  // namespace
}  // namespace opmux::base
