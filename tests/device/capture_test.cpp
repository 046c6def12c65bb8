// Calls while a stream is captured into a graph.
#include "protected_stage.hpp"

namespace opmux::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

using protected_device::Graph;
using protected_device::kCaptureInvalidated;
using protected_device::Stream;

/// Calls on device 0, whose best implementation of protected.scale cannot be captured.
class DeviceCapture : public ProtectedDevices {
 public:
  Stream& queue() { return *static_cast<Stream*>(stream.get()); }
  std::string runs_captured(const Operator& called) {
    CallReport report;
    const Status status = called.with(report, {.stream = stream.get()})(y.view, x.view);
    return status.ok() ? report.implementation : std::string(status.reason());
  }

  Operator scale = op("protected.scale");
  OnDevice x = numbers(), y = zeros();
  DeviceStream stream = access->create_stream(0).value();
};

TEST_F(DeviceCapture, a_captured_call_runs_when_the_graph_is_launched) {
  Graph graph;
  {
    const AmbientScope capturing({.capturing = true});
    queue().begin_capture();
    EXPECT_EQ(runs_captured(scale), kAny);
    ASSERT_EQ(queue().end_capture(graph), 0);
  }
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_THAT(driver(0).ran(), IsEmpty());
  EXPECT_THAT(peek(y), Each(0));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(queue().launch(graph), OPMUX_OK);
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_THAT(driver(0).ran(), ElementsAre("any", "any"));
  EXPECT_THAT(get(y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
}

TEST_F(DeviceCapture, an_implementation_that_cannot_be_captured_is_refused) {
  EXPECT_EQ(runs(scale, y.view, x.view), kOld) << "not captured";
  const AmbientScope capturing({.capturing = true});
  EXPECT_EQ(candidate(scale.explain(y.view, x.view), kOld).code, "caps.capture_safe");
  EXPECT_EQ(scale.explain(y.view, x.view).chosen, kAny);
}

TEST_F(DeviceCapture, a_program_that_does_not_say_it_captures_gets_an_invalid_graph) {
  Graph graph;
  queue().begin_capture();
  EXPECT_EQ(runs_captured(scale), kAny) << "after the first choice failed";
  EXPECT_EQ(queue().end_capture(graph), kCaptureInvalidated);
}

TEST_F(DeviceCapture, a_plan_for_capture_allocates_nothing_while_it_is_captured) {
  const Operator ramp = op("protected.ramp");
  Plan scaled = scale.bind_for_capture(y.view, x.view).value();
  const OnDevice z = zeros();
  Plan ramped = ramp.bind_for_capture(z.view, y.view).value();
  EXPECT_EQ(scaled.implementation(), kAny);
  const uint64_t before = driver(0).allocated();
  Graph graph;
  scaled.set_stream(stream.get());
  ramped.set_stream(stream.get());
  queue().begin_capture();
  EXPECT_TRUE(scaled(y.view, x.view).ok());
  EXPECT_TRUE(ramped(z.view, y.view).ok());
  ASSERT_EQ(queue().end_capture(graph), 0);
  EXPECT_EQ(driver(0).allocated(), before);
  EXPECT_THAT(peek(y), Each(0));
  ASSERT_EQ(queue().launch(graph), OPMUX_OK);
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_THAT(get(z), ElementsAre(2, 5, 8, 11, 10, 13, 16, 19));
  EXPECT_THAT(driver(0).ran(), ElementsAre("any", "ramp"));
}

TEST_F(DeviceCapture, a_graph_runs_after_a_policy_has_denied_what_it_contains) {
  Graph graph;
  Plan plan = scale.bind_for_capture(y.view, x.view).value();
  plan.set_stream(stream.get());
  queue().begin_capture();
  ASSERT_TRUE(plan(y.view, x.view).ok());
  ASSERT_EQ(queue().end_capture(graph), 0);
  Policy policy;
  policy.deny = {kAny};
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  EXPECT_EQ(plan.state(), Plan::State::revoked);
  EXPECT_EQ(plan(y.view, x.view).code(), Code::revoked) << "it cannot be captured again";
  ASSERT_EQ(queue().launch(graph), OPMUX_OK);
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_THAT(get(y), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
}

TEST_F(DeviceCapture, a_lost_device_ends_the_launch_of_a_graph) {
  Graph graph;
  {
    const AmbientScope capturing({.capturing = true});
    queue().begin_capture();
    ASSERT_EQ(runs_captured(scale), kAny);
    ASSERT_EQ(queue().end_capture(graph), 0);
  }
  driver(0).lose();
  EXPECT_EQ(queue().launch(graph), OPMUX_DEVICE_LOST);
}

}  // namespace
}  // namespace opmux::test
