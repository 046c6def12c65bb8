#include <gmock/gmock.h>

#include "stage.hpp"

/// Backends of a program that are off until they are switched on.
namespace opmux::test {
namespace {

struct DefaultEnable : testing::Test {
  DefaultEnable() { stage.add({.id = "copy/plain.one", .kind = Kind::reference}); }
  std::string ran() const {
    std::vector<float> memory(8);
    const TensorView y(memory.data(), f32, {8}), x(memory.data(), f32, {8});
    return ran_by([&] { EXPECT_TRUE(op(y, x).ok()); });
  }

  Stage stage;
  const Operator op = stage.define(kCopy);
};

TEST_F(DefaultEnable, false_keeps_the_backend_off_until_it_is_switched_on) {
  stage.add({.id = "copy/fast.one", .kind = Kind::default_, .default_enable = false});
  EXPECT_EQ(ran(), "copy/plain.one");
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("fast", true).ok());
  EXPECT_EQ(ran(), "copy/fast.one");
}

TEST_F(DefaultEnable, of_one_backend_must_agree_where_it_is_stated) {
  stage.add({.id = "copy/fast.one", .kind = Kind::default_, .default_enable = false});
  stage.add({.id = "copy/fast.two", .kind = Kind::default_});
  Implementation third{.id = "copy/fast.three", .kind = Kind::default_, .default_enable = true};
  third.run = [](CallFrame&) { return Outcome::ok; };
  const auto refused = stage.runtime.implement(third);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "registry.backend");
  EXPECT_THAT(std::string(refused.error().message()), testing::HasSubstr("off by default"));
  EXPECT_EQ(ran(), "copy/plain.one");
}

}  // namespace
}  // namespace opmux::test
