#include "registry/backend.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace opmux::registry {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Device kFirst{OPMUX_DEVICE_CUDA, 0}, kSecond{OPMUX_DEVICE_CUDA, 1};

TEST(StreamHistory, names_the_latest_first) {
  StreamHistory history;
  for (const uint32_t number : {7u, 0u, 7u, 9u}) history.note(kFirst, &history, number);
  EXPECT_THAT(history.latest(kFirst, &history), ElementsAre(9, 7, 0, 7));
}

TEST(StreamHistory, keeps_streams_and_devices_apart) {
  StreamHistory history;
  history.note(kFirst, nullptr, 1);
  history.note(kSecond, nullptr, 2);
  history.note(kFirst, &history, 3);
  EXPECT_THAT(history.latest(kFirst, nullptr), ElementsAre(1));
  EXPECT_THAT(history.latest(kSecond, nullptr), ElementsAre(2));
  EXPECT_THAT(history.latest(kFirst, &history), ElementsAre(3));
  EXPECT_THAT(history.latest(kSecond, &history), IsEmpty());
}

TEST(StreamHistory, remembers_thirty_two) {
  StreamHistory history;
  for (uint32_t i = 0; i < 100; ++i) history.note(kFirst, nullptr, i);
  const std::vector<uint32_t> latest = history.latest(kFirst, nullptr);
  ASSERT_THAT(latest, SizeIs(32));
  EXPECT_EQ(latest.front(), 99u);
  EXPECT_EQ(latest.back(), 68u);
}

TEST(StreamHistory, takes_notes_from_several_threads) {
  StreamHistory history;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) history.note(kFirst, nullptr, 5);
  });
  for (int i = 0; i < 1000; ++i) history.note(kFirst, nullptr, 5);
  other.join();
  EXPECT_THAT(history.latest(kFirst, nullptr), SizeIs(32));
  EXPECT_THAT(history.latest(kFirst, nullptr), Each(5u));
}

}  // namespace
}  // namespace opmux::registry
