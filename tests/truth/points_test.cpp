#include <opmux/points.hpp>
#include <opmux/typed.hpp>

#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

constexpr Point<int64_t(Device)> kTileSize{"gemm.tile_n"};

struct PointsStage : Stage {
  PointsStage() {
    define(kCopy);
    add({.id = "copy/acme.one", .kind = Kind::vendor, .vendor = "acme"});
    add({.id = "copy/fast.one", .kind = Kind::default_});
    EXPECT_TRUE(kTileSize.declare(runtime).ok());
  }
  Registration answers(const char* backend, std::optional<int64_t> value) {
    return kTileSize.answer(runtime, backend, [value](Device) { return value; }).value();
  }
  /// "backend verdict code" of every candidate, asked for the CPU.
  std::string explained() {
    const opmux_arg cpu = detail::point_argument(Device{});
    const PointInfo info = explain_point(runtime, "gemm.tile_n", &cpu, 1).value();
    std::string text = info.answer;
    for (const PointCandidate& one : info.candidates) {
      text += ";" + one.backend + " " + one.verdict + (one.code.empty() ? "" : " " + one.code);
    }
    return text;
  }
};

TEST(Truth, a_point_asked_with_another_type_is_refused) {
  PointsStage stage;
  const Registration held = stage.answers("acme", 64);
  constexpr Point<double(Device)> kOther{"gemm.tile_n"};
  EXPECT_FALSE(kOther.ask(stage.runtime, Device{}).has_value());
  opmux_arg answer{};
  const opmux_arg cpu = detail::point_argument(Device{});
  const Status refused = detail::find_answer(stage.runtime, kOther.signature(), &cpu, 1, answer);
  EXPECT_EQ(refused.reason(), "point.signature");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("gemm.tile_n(Device) -> int"));
}

TEST(Truth, an_answer_of_another_type_is_no_answer) {
  PointsStage stage;
  const Registration odd = detail::answer_point(stage.runtime, kTileSize.signature(), "fast",
                                                [](const opmux_arg*, uint32_t, opmux_arg& answer) {
                                                  answer = detail::point_argument(0.5);
                                                  return true;
                                                })
                               .value();
  EXPECT_FALSE(kTileSize.ask(stage.runtime, Device{}).has_value());
  const Registration held = stage.answers("acme", 64);
  EXPECT_EQ(kTileSize.ask(stage.runtime, Device{}).optional(), 64);
  EXPECT_EQ(stage.explained(), "64;fast no answer;acme chosen");
}

TEST(Truth, points_are_explained_in_the_order_in_which_they_are_asked) {
  PointsStage stage;
  const Registration acme = stage.answers("acme", 16);
  {
    const Registration fast = stage.answers("fast", 32);
    EXPECT_EQ(stage.explained(), "32;fast chosen;acme next");
    ASSERT_TRUE(stage.runtime.policy().set({.deny = {"*/fast.*"}}).ok());
    EXPECT_EQ(stage.explained(), "16;fast refused policy.denied;acme chosen");
    ASSERT_TRUE(stage.runtime.policy().reset().ok());
    ASSERT_TRUE(stage.runtime.plugins().enable_backend("fast", false).ok());
    EXPECT_EQ(stage.explained(), "16;fast refused backend.disabled;acme chosen");
  }
  EXPECT_EQ(stage.explained(), "16;acme chosen");
}

TEST(Truth, points_are_listed_and_an_unknown_one_suggests_the_nearest) {
  PointsStage stage;
  const std::vector<PointInfo> all = list_points(stage.runtime);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].signature, "gemm.tile_n(Device) -> int");
  EXPECT_TRUE(all[0].declared && all[0].candidates.empty());
  EXPECT_EQ(to_json(all),
            R"({"points":[{"name":"gemm.tile_n","signature":"gemm.tile_n(Device) -> int",)"
            R"("declared":true,"answer":"","candidates":[]}]})");
  const auto unknown = explain_point(stage.runtime, "gemm.tile_m");
  EXPECT_EQ(unknown.error().reason(), "point.unknown");
  EXPECT_THAT(std::string(unknown.error().message()), HasSubstr("did you mean 'gemm.tile_n'?"));
  const opmux_arg wrong = detail::point_argument(0.5);
  EXPECT_EQ(explain_point(stage.runtime, "gemm.tile_n", &wrong, 1).error().reason(),
            "point.arguments");
}

}  // namespace
}  // namespace opmux::test
