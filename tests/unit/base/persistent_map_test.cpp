#include "base/persistent_map.hpp"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace opmux::base {
namespace {

using Map = PersistentMap<std::string, int>;
using Plain = std::map<std::string, int>;

Plain plain(const Map& map) {
  Plain copy;
  for (const auto& [key, value] : map) copy.emplace_hint(copy.end(), key, value);
  return copy;
}

/// The differences that for_each_difference() reports: for each key the value before and after; -1
/// if there is none.
std::map<std::string, std::pair<int, int>> differences(const Map& before, const Map& after) {
  std::map<std::string, std::pair<int, int>> all;
  for_each_difference(before, after, [&](const Map::Entry* was, const Map::Entry* is) {
    const std::string& key = was != nullptr ? was->first : is->first;
    const bool added =
        all.try_emplace(key, was != nullptr ? was->second : -1, is != nullptr ? is->second : -1)
            .second;
    EXPECT_TRUE(added) << key << " is reported twice";
  });
  return all;
}

std::string key_of(uint64_t number) { return "op_" + std::to_string(number); }

TEST(PersistentMap, finds_the_last_value_of_each_key_in_the_order_of_keys) {
  std::mt19937 random(1);
  Map map;
  Plain expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string key = key_of(random() % 1000);
    map.put(key, i);
    expected[key] = i;
  }
  EXPECT_EQ(plain(map), expected);
  EXPECT_EQ(map.size(), expected.size());
  for (const auto& [key, value] : expected) {
    ASSERT_NE(map.find(key), nullptr) << key;
    EXPECT_EQ(map.find(std::string_view(key))->second, value);
  }
  EXPECT_EQ(map.find("op_"), nullptr);
  EXPECT_EQ(map.find("zzz"), nullptr);
  EXPECT_EQ(Map().find("op_1"), nullptr);
  EXPECT_TRUE(Map().empty());
}

TEST(PersistentMap, copies_keep_their_entries_and_share_the_unchanged_ones) {
  Map map;
  for (uint64_t i = 0; i < 100; ++i) map.put(key_of(i), 0);
  const Map before = map;
  map.put(key_of(50), 1);
  map.put("new", 1);
  EXPECT_EQ(before.find(key_of(50))->second, 0);
  EXPECT_EQ(before.find("new"), nullptr);
  EXPECT_EQ(before.size(), 100u);
  EXPECT_EQ(map.size(), 101u);
  EXPECT_EQ(map.find(key_of(7)), before.find(key_of(7)));
  EXPECT_NE(map.find(key_of(50)), before.find(key_of(50)));
}

TEST(PersistentMap, reports_each_difference_once) {
  std::mt19937 random(2);
  Map map;
  for (int step = 0; step < 200; ++step) {
    const Map before = map;
    const Plain was = plain(map);
    for (uint64_t count = random() % 20; count > 0; --count) {
      map.put(key_of(random() % 400), static_cast<int>(random() % 1000));
    }
    std::map<std::string, std::pair<int, int>> expected;
    for (const auto& [key, value] : map) {
      const auto found = was.find(key);
      if (before.find(key) == map.find(key)) continue;
      expected[key] = {found == was.end() ? -1 : found->second, value};
    }
    EXPECT_EQ(differences(before, map), expected);
    EXPECT_TRUE(differences(map, map).empty());
  }
  // A map that was not made from the other one, in both directions.
  Map other;
  for (uint64_t i = 300; i < 500; ++i) other.put(key_of(i), -5);
  for (const auto& [key, values] : differences(map, other)) {
    EXPECT_EQ(values.first == -1, map.find(key) == nullptr) << key;
    EXPECT_EQ(values.second == -1, other.find(key) == nullptr) << key;
  }
  EXPECT_EQ(differences(Map(), other).size(), 200u);
  EXPECT_EQ(differences(other, Map()).size(), 200u);
}

/// A key that counts comparisons.
struct CountedKey {
  int number;
  static inline uint64_t comparisons = 0;
  friend bool operator<(const CountedKey& a, const CountedKey& b) {
    ++comparisons;
    return a.number < b.number;
  }
};

}  // namespace
}  // namespace opmux::base

template <>
struct std::hash<opmux::base::CountedKey> {
  size_t operator()(const opmux::base::CountedKey& key) const noexcept {
    return std::hash<int>{}(key.number);
  }
};

namespace opmux::base {
namespace {

TEST(PersistentMap, the_cost_of_a_change_does_not_grow_with_the_size) {
  PersistentMap<CountedKey, int> map;
  for (int i = 0; i < 50'000; ++i) map.put({i}, 0);
  const auto before = map;
  CountedKey::comparisons = 0;
  map.put({777}, 1);
  EXPECT_LT(CountedKey::comparisons, 200u);
  CountedKey::comparisons = 0;
  int found = 0;
  for_each_difference(before, map, [&](const auto*, const auto* is) { found = is->first.number; });
  EXPECT_EQ(found, 777);
  EXPECT_LT(CountedKey::comparisons, 200u);
}

}  // namespace
}  // namespace opmux::base
