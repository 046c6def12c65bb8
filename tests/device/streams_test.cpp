// Calls that return before their work is done, errors that are found later, and lost devices.
#include "protected_stage.hpp"

namespace opmux::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using protected_device::kIllegalAddress;
using protected_device::kLaunchFailed;

/// Calls of protected.scale on device 1, where they do not wait.
class DeviceStreams : public ProtectedDevices {
 public:
  Status call(void* stream = nullptr) { return scale.with({.stream = stream})(y.view, x.view); }

  Operator scale = op("protected.scale");
  OnDevice x = numbers(1), y = zeros(1);
};

TEST_F(DeviceStreams, a_call_returns_before_its_work_is_done) {
  const DeviceStream stream = access->create_stream(1).value();
  driver(1).hold();
  ASSERT_TRUE(call(stream.get()).ok());
  EXPECT_THAT(driver(1).ran(), IsEmpty());
  EXPECT_THAT(peek(y), Each(0));
  driver(1).release();
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_THAT(driver(1).ran(), ElementsAre("new"));
  EXPECT_THAT(peek(y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
}

TEST_F(DeviceStreams, devices_do_not_wait_for_each_other) {
  const OnDevice other_x = numbers(0), other_y = zeros(0);
  driver(1).hold();
  ASSERT_TRUE(call().ok());
  EXPECT_EQ(runs(scale, other_y.view, other_x.view), kOld);
  EXPECT_THAT(get(other_y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  EXPECT_THAT(peek(y), Each(0));
  driver(1).release();
  ASSERT_TRUE(access->synchronize(nullptr, 1).ok());
}

TEST_F(DeviceStreams, a_late_error_marks_the_device_and_counts_for_no_implementation) {
  const DeviceStream stream = access->create_stream(1).value();
  ASSERT_TRUE(call(stream.get()).ok());
  driver(1).fail_next(kLaunchFailed);
  ASSERT_TRUE(call(stream.get()).ok()) << "the error is found later";
  const Status late = stream.synchronize();
  EXPECT_EQ(late.code(), Code::failed);
  EXPECT_EQ(late.reason(), "device.function");

  const std::vector<DeviceError> errors = stage.runtime.health().device_errors();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].device, (Device{OPMUX_DEVICE_EXT_DEV, 1}));
  EXPECT_EQ(errors[0].code, kLaunchFailed);
  EXPECT_EQ(errors[0].count, 1u);
  EXPECT_THAT(errors[0].suspects, ElementsAre(kNew));
  EXPECT_EQ(stage.stats(kNew).failed, 0u);
  EXPECT_EQ(stage.stats(kNew).calls, 2u);
  EXPECT_THAT(stage.runtime.health().report().breakers, IsEmpty());
  EXPECT_EQ(stage.runtime.health().report().verdict, Health::degraded);
  ASSERT_EQ(events_with("device.error").size(), 1u);
  EXPECT_THAT(events_with("device.error")[0].text, HasSubstr("ext_dev:1 reported error 719"));

  EXPECT_EQ(runs(scale, y.view, x.view), kNew) << "the device stays in use";
  EXPECT_TRUE(access->synchronize(nullptr, 1).ok());
}

TEST_F(DeviceStreams, suspects_are_the_implementations_of_that_stream) {
  const DeviceStream quiet = access->create_stream(1).value();
  ASSERT_TRUE(call(quiet.get()).ok());
  ASSERT_TRUE(quiet.synchronize().ok());
  const Operator ramp = op("protected.ramp");
  ASSERT_TRUE(ramp(y.view, x.view).ok());
  driver(1).fail_next(kLaunchFailed);
  ASSERT_TRUE(ramp(y.view, x.view).ok());
  EXPECT_EQ(access->synchronize(nullptr, 1).code(), Code::failed);
  ASSERT_EQ(stage.runtime.health().device_errors().size(), 1u);
  EXPECT_THAT(stage.runtime.health().device_errors()[0].suspects,
              ElementsAre("protected.ramp/protected.prepared"));
}

TEST_F(DeviceStreams, an_address_of_another_device_is_a_late_error) {
  const OnDevice other = zeros(0);
  const TensorView wrong(other.memory.handle(), f32, {2, 4}, {OPMUX_DEVICE_EXT_DEV, 1});
  EXPECT_EQ(runs(scale, wrong, x.view), kNew);
  EXPECT_EQ(access->synchronize(nullptr, 1).code(), Code::failed);
  EXPECT_EQ(stage.runtime.health().device_errors().at(0).code, kIllegalAddress);
}

TEST_F(DeviceStreams, a_function_of_the_program_enqueues_on_the_stream_of_the_call) {
  std::vector<void*> met;
  const Implementation mine{.id = "protected.scale/mine.v1",
                            .vendor = "mine",
                            .priority = 900,
                            .stream = true,
                            .caps = Caps{}.device(OPMUX_DEVICE_EXT_DEV).arch("9.0", ""),
                            .run = [&](CallFrame& call) {
                              met.push_back(call.stream());
                              return static_cast<Outcome>(protected_device::driver().scale(
                                  call.tensor(0).device().id, call.data<void>(0),
                                  call.data<void>(1), call.tensor(0).elements(), 2, call.stream()));
                            }};
  ASSERT_TRUE(stage.runtime.plugins().set_architecture({OPMUX_DEVICE_EXT_DEV, 1}, "9.0").ok());
  const Registration registered = stage.runtime.implement(mine).value();
  Implementation other = mine;
  other.id = "protected.ramp/mine.v1";
  other.stream = false;
  EXPECT_THAT(stage.runtime.implement(other).error().message(),
              HasSubstr("its calls return before their work is done"));

  const DeviceStream stream = access->create_stream(1).value();
  driver(1).hold();
  CallReport report;
  ASSERT_TRUE(scale.with(report, {.stream = stream.get()})(y.view, x.view).ok());
  EXPECT_EQ(report.implementation, "protected.scale/mine.v1");
  EXPECT_THAT(met, ElementsAre(stream.get()));
  EXPECT_THAT(peek(y), Each(0));
  driver(1).fail_next(kLaunchFailed);
  driver(1).release();
  EXPECT_EQ(stream.synchronize().code(), Code::failed);
  EXPECT_THAT(stage.runtime.health().device_errors().at(0).suspects,
              ElementsAre("protected.scale/mine.v1"));
}

TEST_F(DeviceStreams, a_plan_runs_on_the_stream_that_is_set) {
  const DeviceStream stream = access->create_stream(1).value();
  Plan plan = scale.bind(y.view, x.view).value();
  plan.set_stream(stream.get());
  driver(1).fail_next(kLaunchFailed);
  ASSERT_TRUE(plan(y.view, x.view).ok());
  EXPECT_TRUE(access->synchronize(nullptr, 1).ok()) << "nothing is on the default stream";
  EXPECT_EQ(stream.synchronize().code(), Code::failed);
  ASSERT_TRUE(plan.refresh().ok());
  ASSERT_TRUE(plan(y.view, x.view).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_THAT(peek(y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
}

TEST_F(DeviceStreams, events_measure_the_time_of_the_device) {
  const DeviceStream stream = access->create_stream(1).value();
  const DeviceEvent start = access->record_event(stream.get(), 1).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call(stream.get()).ok());
  const DeviceEvent stop = access->record_event(stream.get(), 1).value();
  EXPECT_EQ(access->elapsed_ns(start, stop).value(), 3000u);
}

TEST_F(DeviceStreams, a_lost_device_is_not_used_again_and_the_other_one_is) {
  const OnDevice other_x = numbers(0), other_y = zeros(0);
  Plan on_lost = scale.bind(y.view, x.view).value();
  Plan on_other = scale.bind(other_y.view, other_x.view).value();
  ASSERT_TRUE(call().ok());
  driver(1).lose();
  CallReport report;
  const Status lost = scale.with(report)(y.view, x.view);
  EXPECT_EQ(lost.code(), Code::device_lost);
  EXPECT_EQ(report.implementation, kNew) << "no other implementation of the device was tried";

  EXPECT_EQ(runs(scale, y.view, x.view), "dispatch.no_candidate");
  EXPECT_EQ(runs(op("protected.ramp"), y.view, x.view), "dispatch.no_candidate");
  const Candidate refused = candidate(scale.explain(y.view, x.view), kNew);
  EXPECT_EQ(refused.code, "health.device_fatal");
  EXPECT_EQ(refused.reason, "ext_dev:1 was lost; restart the process to use it again");
  EXPECT_EQ(stage.stats(kNew).device_lost, 1u);
  EXPECT_EQ(stage.stats(kNew).failed, 0u);
  EXPECT_THAT(stage.runtime.health().lost_devices(), ElementsAre(Device{OPMUX_DEVICE_EXT_DEV, 1}));
  EXPECT_EQ(stage.runtime.health().report().verdict, opmux::Health::fatal);

  EXPECT_EQ(on_lost.state(), Plan::State::revoked);
  EXPECT_EQ(on_lost(y.view, x.view).code(), Code::revoked);
  EXPECT_EQ(on_lost.refresh().code(), Code::no_candidate);
  EXPECT_NE(on_other.state(), Plan::State::revoked);
  EXPECT_TRUE(on_other(other_y.view, other_x.view).ok());
  EXPECT_EQ(runs(scale, other_y.view, other_x.view), kOld);
  EXPECT_THAT(get(other_y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
}

TEST_F(DeviceStreams, work_in_the_queue_of_a_lost_device_ends_with_the_loss) {
  const DeviceStream stream = access->create_stream(1).value();
  driver(1).hold();
  ASSERT_TRUE(call(stream.get()).ok());
  driver(1).lose();
  EXPECT_EQ(stream.synchronize().code(), Code::device_lost);
  EXPECT_THAT(driver(1).ran(), IsEmpty());
  EXPECT_EQ(access->allocate(16, 1).error().code(), Code::device_lost);
  EXPECT_TRUE(access->allocate(16, 0));
}

TEST_F(DeviceStreams, a_plan_finds_the_loss_of_its_device) {
  Plan plan = scale.bind(y.view, x.view).value();
  ASSERT_TRUE(plan(y.view, x.view).ok());
  driver(1).lose();
  EXPECT_EQ(plan(y.view, x.view).code(), Code::device_lost);
  EXPECT_EQ(plan.state(), Plan::State::revoked);
  EXPECT_EQ(runs(scale, y.view, x.view), "dispatch.no_candidate");
}

}  // namespace
}  // namespace opmux::test
