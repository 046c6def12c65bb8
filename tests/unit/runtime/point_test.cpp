#include <opmux/typed.hpp>

#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr Point<int64_t(Device)> kTile{"gemm.tile_n"};
constexpr Point<std::string(int64_t, double, bool, std::string)> kName{"kernel.name"};

struct PointTest : testing::Test, Stage {
  PointTest() {
    (void)define("copy(out Tensor y[*], Tensor x[*])");
    add({.id = "copy/acme.one", .kind = Kind::vendor, .vendor = "acme"});
    add({.id = "copy/fast.one", .kind = Kind::default_});
    EXPECT_TRUE(kTile.declare(runtime).ok());
  }
  int64_t tile() {
    return kTile.ask(runtime, Device{}).value_or_else([] { return -7; });
  }
  Registration answer(const char* backend, std::optional<int64_t> value) {
    return kTile.answer(runtime, backend, [value](Device) { return value; }).value();
  }
};

TEST_F(PointTest, without_an_answer_the_default_is_evaluated) {
  EXPECT_EQ(tile(), -7);
  EXPECT_FALSE(kTile.ask(runtime, Device{}).has_value());
}

TEST_F(PointTest, an_answer_of_zero_is_an_answer_and_the_default_is_not_evaluated) {
  const Registration held = answer("acme", 0);
  bool evaluated = false;
  EXPECT_EQ(kTile.ask(runtime, Device{}).value_or_else([&] {
    evaluated = true;
    return 5;
  }),
            0);
  EXPECT_FALSE(evaluated);
}

TEST_F(PointTest, the_answer_of_the_highest_backend_wins) {
  const Registration acme = answer("acme", 16);
  EXPECT_EQ(tile(), 16);
  {
    const Registration fast = answer("fast", 32);
    EXPECT_EQ(tile(), 32);
  }
  EXPECT_EQ(tile(), 16) << "withdrawn with its registration";
  const Registration silent = answer("fast", std::nullopt);
  EXPECT_EQ(tile(), 16) << "a backend without an answer is skipped";
}

TEST_F(PointTest, denied_and_disabled_backends_do_not_answer) {
  const Registration acme = answer("acme", 16);
  const Registration fast = answer("fast", 32);
  ASSERT_TRUE(runtime.policy().set({.deny = {"*/fast.*"}}).ok());
  EXPECT_EQ(tile(), 16);
  ASSERT_TRUE(runtime.plugins().enable_backend("acme", false).ok());
  EXPECT_EQ(tile(), -7);
}

TEST_F(PointTest, all_types_travel) {
  ASSERT_TRUE(kName.declare(runtime).ok());
  const Registration held = kName
                                .answer(runtime, "fast",
                                        [](int64_t n, double f, bool b, const std::string& s) {
                                          static std::string kept;
                                          kept = s + std::to_string(n) + (b ? "yes" : "no") +
                                                 std::to_string(f).substr(0, 3);
                                          return std::optional(kept);
                                        })
                                .value();
  EXPECT_EQ(kName.ask(runtime, 3, 0.5, true, "k").optional(), "k3yes0.5");
  constexpr Point<Device(Device)> kNext{"device.next"};
  constexpr Point<bool()> kFlag{"flag.on"};
  constexpr Point<double(double)> kHalf{"number.half"};
  EXPECT_FALSE(kNext.ask(runtime, Device{2, 1}).has_value()) << "the first ask declares the point";
  const Registration next =
      kNext
          .answer(runtime, "fast", [](Device d) { return std::optional(Device{d.type, d.id + 1}); })
          .value();
  EXPECT_EQ(kNext.ask(runtime, Device{2, 1}).optional(), (Device{2, 2}));
  ASSERT_TRUE(kFlag.declare(runtime).ok());
  ASSERT_TRUE(kHalf.declare(runtime).ok());
  const Registration off =
      kFlag.answer(runtime, "fast", [] { return std::optional(false); }).value();
  const Registration half =
      kHalf.answer(runtime, "fast", [](double n) { return std::optional(n / 2); }).value();
  EXPECT_EQ(kFlag.ask(runtime).optional(), false);
  EXPECT_EQ(kHalf.ask(runtime, 3.0).optional(), 1.5);
  const auto function = kHalf.function(runtime);
  EXPECT_EQ(function(5.0), 2.5);
}

TEST_F(PointTest, misspelt_and_mistyped_answers_are_refused) {
  constexpr Point<int64_t(Device)> misspelt{"gemm.tile_m"};
  const auto refused =
      misspelt.answer(runtime, "fast", [](Device) { return std::optional<int64_t>(1); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "point.unknown");
  EXPECT_NE(refused.error().message().find("gemm.tile_n"), std::string_view::npos);
  constexpr Point<int64_t(int64_t)> mistyped{"gemm.tile_n"};
  EXPECT_EQ(mistyped.declare(runtime).reason(), "point.signature");
  EXPECT_FALSE(mistyped.ask(runtime, 1).has_value());
  EXPECT_EQ(kTile.answer(runtime, "nobody", [](Device) { return std::optional<int64_t>(1); })
                .error()
                .reason(),
            "point.backend");
}

}  // namespace
}  // namespace opmux::test
