// Decisions about tensors of devices, and state that implementations keep there.
#include <fcntl.h>
#include <unistd.h>

#include <opmux/conformance.hpp>

#include "protected_stage.hpp"

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using DeviceDecisions = ProtectedDevices;

TEST_F(DeviceDecisions, the_cpu_cannot_touch_the_memory) {
  const OnDevice x = numbers();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], x.memory.handle(), 4), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
  EXPECT_THAT(get(x), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << "the device can";
}

TEST_F(DeviceDecisions, each_device_runs_what_supports_its_architecture) {
  const Operator scale = op("protected.scale");
  for (int32_t id = 0; id < 2; ++id) {
    const OnDevice x = numbers(id), y = zeros(id);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(runs(scale, y.view, x.view), id == 0 ? kOld : kNew);
    EXPECT_THAT(get(y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  }
  EXPECT_THAT(driver(0).ran(), ElementsAre("old", "old", "old"));
  EXPECT_THAT(driver(1).ran(), ElementsAre("new", "new", "new"));
}

TEST_F(DeviceDecisions, an_architecture_out_of_range_is_explained) {
  const Operator scale = op("protected.scale");
  const OnDevice first = numbers(0), second = numbers(1);
  const Candidate at_first = candidate(scale.explain(none, first.view), kNew);
  EXPECT_EQ(at_first.code, "caps.arch");
  EXPECT_EQ(at_first.reason, "the architecture of ext_dev:0 must be at least 9.0, is 8.6");
  const Candidate at_second = candidate(scale.explain(none, second.view), kOld);
  EXPECT_EQ(at_second.code, "caps.arch");
  EXPECT_EQ(at_second.reason, "the architecture of ext_dev:1 must be at most 8.9, is 9.0");
}

TEST_F(DeviceDecisions, functions_of_the_program_are_compared_with_the_architecture_of_the_device) {
  const Operator scale = op("protected.scale");
  stage.add({.id = "protected.scale/mine.v1",
             .priority = 900,
             .caps = Caps{}.device(OPMUX_DEVICE_EXT_DEV).arch("9.0", "")});
  const OnDevice first = numbers(0), second = numbers(1), y = zeros(1);
  const Candidate mine = candidate(scale.explain(none, first.view), "protected.scale/mine.v1");
  EXPECT_EQ(mine.code, "caps.arch");
  EXPECT_EQ(mine.reason, "the architecture of ext_dev:0 must be at least 9.0, is 8.6");
  EXPECT_EQ(runs(scale, y.view, second.view), "protected.scale/mine.v1");
  // A statement of the program is stronger than that of another backend.
  ASSERT_TRUE(stage.runtime.plugins().set_architecture({OPMUX_DEVICE_EXT_DEV, 1}, "7.0").ok());
  EXPECT_EQ(runs(scale, y.view, second.view), kNew);
}

TEST_F(DeviceDecisions, tensors_of_several_devices_are_refused_before_anything_runs) {
  const Operator scale = op("protected.scale");
  const OnDevice x = numbers(0), y = zeros(1);
  EXPECT_EQ(runs(scale, y.view, x.view), "schema.device_mismatch");
  const Rows here;
  EXPECT_EQ(runs(scale, TensorView(const_cast<float*>(here.out), f32, {2, 4}), x.view),
            "schema.device_mismatch");
  EXPECT_TRUE(driver(0).ran().empty());
  EXPECT_TRUE(driver(1).ran().empty());
}

TEST_F(DeviceDecisions, kernels_of_the_cpu_never_get_memory_of_a_device) {
  const Operator silu = op("silu_and_mul");
  const OnDevice x = numbers(), y = put(std::vector<float>(4));
  EXPECT_EQ(runs(silu, y.view, x.view), "silu_and_mul/protected.kernel");
  const Candidate reference =
      candidate(silu.explain(y.view, x.view), "silu_and_mul/reference.scalar");
  EXPECT_EQ(reference.code, "caps.device");
  EXPECT_EQ(reference.reason, "device(y) must be cpu, is ext_dev");
  // Without the device's implementation nothing runs, rather than the reference.
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("protected", false).ok());
  EXPECT_EQ(runs(silu, y.view, x.view), "dispatch.no_candidate");
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("protected", true).ok());
  ASSERT_TRUE(access->synchronize().ok());  // calls return before their kernels ran
  EXPECT_THAT(driver(0).ran(), ElementsAre("silu_and_mul"));
}

TEST_F(DeviceDecisions, a_launch_that_fails_falls_back_on_the_same_device) {
  const Operator scale = op("protected.scale");
  const OnDevice x = numbers(), y = zeros();
  driver(0).refuse("old");
  CallReport report;
  ASSERT_TRUE(scale.with(report)(y.view, x.view, 3.0).ok());
  EXPECT_EQ(report.implementation, kAny);
  EXPECT_TRUE(report.fell_back);
  EXPECT_THAT(report.reason, HasSubstr(kOld));
  EXPECT_THAT(get(y), ElementsAre(3, 6, 9, 12, 15, 18, 21, 24));
  EXPECT_EQ(stage.stats(kOld).failed, 1u);
  EXPECT_THAT(driver(0).ran(), ElementsAre("any"));
}

TEST_F(DeviceDecisions, rules_name_the_type_of_device_or_its_alias) {
  const Operator scale = op("protected.scale");
  const OnDevice x = numbers(), y = zeros();
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules: [{op: protected.scale, when: 'device(x) == \"npu\"', "
                        "prefer: [protected.scale/protected.any]}]\n")
                  .ok());
  EXPECT_EQ(runs(scale, y.view, x.view), kAny);
}

TEST_F(DeviceDecisions, a_prepared_state_lives_on_the_device_of_its_calls) {
  const uint64_t before = driver(0).allocated() + driver(1).allocated();
  const Operator ramp = op("protected.ramp");
  for (int32_t id = 0; id < 2; ++id) {
    const OnDevice x = numbers(id), y = zeros(id);
    EXPECT_EQ(runs(ramp, y.view, x.view), "protected.ramp/protected.prepared");
    EXPECT_TRUE(ramp(y.view, x.view).ok());
    EXPECT_THAT(get(y), ElementsAre(1, 3, 5, 7, 5, 7, 9, 11));
  }
  EXPECT_EQ(driver(0).allocated() + driver(1).allocated() - before, 2 * 4096u)
      << "one state for each device, made once";
}

TEST_F(DeviceDecisions, a_constant_is_packed_on_the_device_and_not_read_by_the_cpu) {
  const OnDevice x = numbers(), y = zeros();
  OnDevice weight{access->allocate(16).value(), {}};
  weight.view = weight.memory.view(f32, {4});
  const float factors[] = {1, 10, 100, 1000};
  ASSERT_TRUE(access->copy_in(weight.memory, factors, sizeof factors).ok());
  ASSERT_TRUE(access->synchronize().ok());
  {
    const Constant constant = stage.runtime.constant(weight.view).value();
    const Operator weigh = op("protected.weigh");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(runs(weigh, y.view, x.view, constant), "protected.weigh/protected.packed");
    }
    EXPECT_THAT(get(y), ElementsAre(1, 20, 300, 4000, 5, 60, 700, 8000));
    EXPECT_EQ(stage.runtime.packed_bytes(), 16u);
    EXPECT_THAT(driver(0).ran(), ElementsAre("packed", "packed"));
    ASSERT_TRUE(weigh(y.view, x.view, weight.view).ok());
    ASSERT_TRUE(access->synchronize().ok());
    EXPECT_EQ(driver(0).ran().back(), "plain");
  }
  EXPECT_EQ(stage.runtime.packed_bytes(), 0u);
}

TEST_F(DeviceDecisions, the_conformance_suite_verifies_a_kernel_of_the_device) {
  const auto report = conformance::verify(
      stage.runtime, {.implementations = {"silu_and_mul/protected.kernel"}, .cases = 40});
  ASSERT_TRUE(report) << report.error().to_string();
  const auto& found = report->operators.at(0).implementations.at(0);
  EXPECT_TRUE(found.passed()) << found.findings.at(0).to_string();
  EXPECT_GT(found.cases, 5u);
}

}  // namespace
}  // namespace opmux::test
