#include "dispatch/decide/class_table.hpp"

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
  longer.count = 2;
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
    EXPECT_EQ(key.words[0], choice.generation);
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

}  // namespace
}  // namespace opmux::dispatch
