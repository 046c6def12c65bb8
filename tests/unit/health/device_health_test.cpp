#include "health/device_health.hpp"

namespace opmux::health {
namespace {

constexpr Device kFirst{OPMUX_DEVICE_CUDA, 0}, kSecond{OPMUX_DEVICE_CUDA, 1};

TEST(DeviceHealth, a_device_is_well_until_it_is_lost) {
  DeviceHealth health;
  EXPECT_EQ(health.refusal(kFirst), "");
  EXPECT_TRUE(health.on_outcome(kFirst, Code::device_lost));
  EXPECT_EQ(health.refusal(kFirst), "cuda:0 was lost; restart the process to use it again");
  EXPECT_EQ(health.refusal(kSecond), "");
  EXPECT_EQ(health.fatal_devices(), (std::vector<Device>{kFirst}));
}

TEST(DeviceHealth, errors_found_later_mark_a_device_and_refuse_nothing) {
  DeviceHealth health;
  EXPECT_TRUE(health.marks().empty());
  health.mark(kSecond, 700, {"op/a.b"});
  health.mark(kFirst, -5, {});
  health.mark(kSecond, 719, {"op/c.d", "op/a.b"});
  const std::vector<DeviceError> marks = health.marks();
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].device, kSecond);
  EXPECT_EQ(marks[0].code, 719);
  EXPECT_EQ(marks[0].count, 2u);
  EXPECT_EQ(marks[0].suspects, (std::vector<std::string>{"op/c.d", "op/a.b"}));
  EXPECT_EQ(marks[1].count, 1u);
  EXPECT_EQ(health.refusal(kSecond), "");
  EXPECT_TRUE(health.fatal_devices().empty());
}

TEST(DeviceHealth, a_second_loss_changes_nothing) {
  DeviceHealth health;
  EXPECT_TRUE(health.on_outcome(kFirst, Code::device_lost));
  EXPECT_FALSE(health.on_outcome(kFirst, Code::device_lost));
  EXPECT_EQ(health.fatal_devices().size(), 1u);
}

TEST(DeviceHealth, other_outcomes_and_the_cpu_lose_nothing) {
  DeviceHealth health;
  for (const Code code : {Code::declined, Code::invalid_argument, Code::failed, Code::resource}) {
    EXPECT_FALSE(health.on_outcome(kFirst, code));
  }
  EXPECT_FALSE(health.on_outcome({}, Code::device_lost));
  EXPECT_FALSE(health.fatal({}));
  EXPECT_TRUE(health.fatal_devices().empty());
}

TEST(DeviceHealth, remembers_sixty_four_devices) {
  DeviceHealth health;
  for (int32_t id = 0; id < 64; ++id) {
    EXPECT_TRUE(health.on_outcome({OPMUX_DEVICE_CUDA, id}, Code::device_lost));
  }
  EXPECT_FALSE(health.on_outcome({OPMUX_DEVICE_CUDA, 64}, Code::device_lost));
  EXPECT_TRUE(health.fatal({OPMUX_DEVICE_CUDA, 63}));
  EXPECT_FALSE(health.fatal({OPMUX_DEVICE_CUDA, 64}));
  EXPECT_EQ(health.fatal_devices().size(), 64u);
}

}  // namespace
}  // namespace opmux::health
