#include "dispatch/decide/class_table.hpp"

#include <atomic>
#include <barrier>
#include <thread>

namespace opmux::dispatch {
namespace {

ClassKey key_of(uint64_t number) {
  ClassKey key;
  key.append(number);
  return key;
}

std::shared_ptr<const Decision> choice_of(uint64_t number) {
  auto choice = std::make_shared<Decision>();
  choice->generation = number;
  return choice;
}

const Decision* add(ClassTable& table, uint64_t number) {
  auto choice = choice_of(number);
  return table.insert(key_of(number), choice);
}

TEST(ClassTable, finds_what_was_inserted_and_nothing_else) {
  ClassTable table;
  EXPECT_EQ(table.find(key_of(1)), nullptr);
  ASSERT_NE(add(table, 1), nullptr);
  EXPECT_EQ(table.find(key_of(1))->generation, 1u);
  EXPECT_EQ(table.find(key_of(2)), nullptr);
  ClassKey longer = key_of(1);
  longer.append(0);
  EXPECT_EQ(table.find(longer), nullptr);
}

TEST(ClassTable, keeps_the_first_choice_of_a_class) {
  ClassTable table;
  const Decision* first = add(table, 1);
  auto second = choice_of(99);
  EXPECT_EQ(table.insert(key_of(1), second), first);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(second.use_count(), 1);
}

TEST(ClassTable, grows_to_its_capacity_and_then_takes_no_more) {
  ClassTable table;
  for (uint64_t i = 0; i < ClassTable::kCapacity; ++i) ASSERT_NE(add(table, i), nullptr) << i;
  EXPECT_TRUE(table.full());
  EXPECT_EQ(add(table, ClassTable::kCapacity), nullptr);
  EXPECT_EQ(table.size(), 4096u);
  size_t seen = 0;
  table.for_each([&](const ClassKey& key, const Decision& choice) {
    ++seen;
    EXPECT_EQ(key[0], choice.generation);
  });
  EXPECT_EQ(seen, 4096u);
  for (uint64_t i = 0; i < ClassTable::kCapacity; ++i) {
    ASSERT_EQ(table.find(key_of(i))->generation, i);
  }
}

TEST(ClassTable, threads_that_insert_the_same_classes_agree_on_every_choice) {
  ClassTable table;
  constexpr uint64_t kClasses = 600;
  std::vector<std::vector<const Decision*>> seen(4);
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kClasses; ++i) {
        const Decision* known = table.find(key_of(i));
        mine.push_back(known != nullptr ? known : add(table, i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < kClasses; ++i) {
    for (const auto& mine : seen) ASSERT_EQ(mine[i]->generation, i);
    ASSERT_EQ(table.find(key_of(i))->generation, i);
  }
}

/// Stops threads between the test for room and the store of the entry, where ClassTable calls
/// enter(). A thread waits there until as many threads as expect() says have arrived, but not
/// without end, because a table may let in one insert at a time.
struct Window {
  static inline std::atomic<int> arrived{0}, expected{0};
  static inline thread_local bool stops_here = false;

  static void expect(int threads) {
    arrived = 0;
    expected = threads;
  }
  static void enter() {
    if (!stops_here) return;
    ++arrived;
    for (int turn = 0; turn < 5000 && arrived < expected; ++turn) std::this_thread::yield();
  }
};

TEST(ClassTableLifetimes, forty_inserts_that_all_found_room_end_and_lookups_still_end) {
  constexpr int kThreads = 40;
  Window::expect(kThreads);
  ClassTable table(Window::enter);
  std::barrier start(kThreads);
  std::vector<const Decision*> kept(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Window::stops_here = true;
      start.arrive_and_wait();
      kept[static_cast<size_t>(i)] = add(table, static_cast<uint64_t>(i) * 7919);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.size(), 40u);
  for (size_t i = 0; i < kThreads; ++i) {
    ASSERT_NE(kept[i], nullptr);
    EXPECT_EQ(table.find(key_of(i * 7919)), kept[i]);
    EXPECT_EQ(kept[i]->generation, i * 7919);
  }
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(table.find(key_of(1'000'000 + i)), nullptr);
}

TEST(ClassTableLifetimes, a_class_is_inserted_once_though_its_step_fills_up_meanwhile) {
  ClassTable table(Window::enter);
  // The first step has 32 slots, and one more entry makes it half full.
  for (uint64_t i = 0; i < 15; ++i) add(table, i);
  Window::expect(2);
  const Decision* first = nullptr;
  std::thread slow([&] {
    Window::stops_here = true;
    first = add(table, 100);
  });
  while (Window::arrived == 0) std::this_thread::yield();
  add(table, 200);
  const Decision* second = add(table, 100);
  Window::arrived = 2;  // Lets the slow thread go on.
  slow.join();
  EXPECT_EQ(first, second);
  EXPECT_EQ(table.find(key_of(100)), first);
  EXPECT_EQ(table.size(), 17u);
}

}  // namespace
}  // namespace opmux::dispatch
