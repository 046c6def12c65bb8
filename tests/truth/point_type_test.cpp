#include <gmock/gmock.h>

#include "registry/registry.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

/// Specialization points that are asked or answered with another type than they have.
namespace opmux::test {
namespace {

using testing::HasSubstr;

constexpr Point<int64_t(Device)> kTile{"gemm.tile_n"};
constexpr Point<double(Device)> kTileAsFloat{"gemm.tile_n"};

struct PointType : testing::Test {
  PointType() {
    stage.define(kCopy);
    stage.add({.id = "copy/acme.one", .kind = Kind::default_});
  }
  static Options with_events(std::vector<Event>& events) {
    Options options = bare();
    options.sink = [&events](const Event& event) { events.push_back(event); };
    return options;
  }
  std::string told(const std::string& code) const {
    for (const Event& event : events) {
      if (event.code == code) return event.text;
    }
    return "";
  }

  std::vector<Event> events;
  Stage stage{with_events(events)};
};

TEST_F(PointType, another_than_the_declared_one_is_refused_when_asked) {
  const auto answer =
      kTile.answer(stage.runtime, "acme", [](Device) { return std::optional<int64_t>(77); });
  ASSERT_FALSE(answer) << "not declared yet";
  ASSERT_TRUE(kTile.declare(stage.runtime).ok());
  const auto kept =
      kTile.answer(stage.runtime, "acme", [](Device) { return std::optional<int64_t>(77); });
  ASSERT_TRUE(kept);
  EXPECT_EQ(kTile.ask(stage.runtime, Device{}).optional(), 77);
  EXPECT_FALSE(kTileAsFloat.ask(stage.runtime, Device{}).has_value());
  EXPECT_THAT(told("point.signature"), HasSubstr("gemm.tile_n"));
}

TEST_F(PointType, of_an_answer_that_differs_is_skipped_and_logged) {
  ASSERT_TRUE(kTile.declare(stage.runtime).ok());
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const auto wrong = detail::answer_point(stage.runtime, kTile.signature(), "acme",
                                          [](const opmux_arg*, uint32_t, opmux_arg& answer) {
                                            answer = detail::point_argument(1.5);
                                            return true;
                                          });
  ASSERT_TRUE(wrong);
  const auto right =
      kTile.answer(stage.runtime, "plain", [](Device) { return std::optional<int64_t>(64); });
  ASSERT_TRUE(right);
  EXPECT_EQ(kTile.ask(stage.runtime, Device{}).optional(), 64);
  EXPECT_THAT(told("point.answer"), HasSubstr("backend acme"));
}

TEST_F(PointType, of_a_plugins_answer_that_differs_is_logged_when_the_point_is_declared) {
  registry::Batch batch;
  batch.backend.name = "late";
  batch.backend.kind = Kind::default_;
  batch.backend.plugin = "late_plugin";
  batch.points.push_back({"gemm.tile_n(Device) -> float",
                          [](const opmux_arg*, uint32_t, opmux_arg&) { return false; }});
  ASSERT_TRUE(stage.runtime.core().registry().add(batch, false).refused.empty());
  ASSERT_TRUE(kTile.declare(stage.runtime).ok());
  EXPECT_THAT(told("point.signature"), HasSubstr("gemm.tile_n of late"));
}

}  // namespace
}  // namespace opmux::test
