#include "stage.hpp"

#include "dispatch/plan/timed_run.hpp"
#include "drafts.hpp"
#include "runtime/core.hpp"

namespace opmux::test {
namespace {

/// A device whose clock advances by `kernel_ns` with each kernel, and that records events.
struct TimedDevice {
  int64_t now = 0, kernel_ns = 0;
  int recorded = 0, destroyed = 0, read = 0;
  uint64_t runs = 0;
  bool broken = false;

  static TimedDevice& of(void* self) { return *static_cast<TimedDevice*>(self); }
  static int32_t run(void* self, const opmux_call*) {
    ++of(self).runs;
    of(self).now += of(self).kernel_ns;
    return OPMUX_OK;
  }
  static int32_t record(void* self, opmux_device device, void*, void** event) {
    EXPECT_EQ(device.type, OPMUX_DEVICE_CUDA);
    if (of(self).broken) return OPMUX_FAILED;
    ++of(self).recorded;
    *event = new int64_t(of(self).now);
    return OPMUX_OK;
  }
  static int32_t elapsed(void* self, void* start, void* stop, uint64_t* nanoseconds) {
    ++of(self).read;
    *nanoseconds =
        static_cast<uint64_t>(*static_cast<int64_t*>(stop) - *static_cast<int64_t*>(start));
    return OPMUX_OK;
  }
  static void destroy(void* self, void* event) {
    ++of(self).destroyed;
    delete static_cast<int64_t*>(event);
  }
};

int32_t no_memory(void*, opmux_device, uint64_t, uint64_t, void**) { return OPMUX_RESOURCE; }
int32_t no_copy(void*, void*, opmux_device, const void*, opmux_device, uint64_t, void*) {
  return OPMUX_OK;
}

/// A runtime with the device above behind copy/timed.v1, and a CPU implementation of copy that
/// cannot run on it.
struct TruthOfDeviceEvents : testing::Test {
  void SetUp() override {
    opmux_device_table table{};
    table.struct_size = sizeof table;
    table.count = [](void*) -> int32_t { return 1; };
    table.alloc = no_memory;
    table.free = [](void*, opmux_device, void*) {};
    table.copy = no_copy;
    table.synchronize = [](void*, opmux_device, void*) -> int32_t { return OPMUX_OK; };
    table.stream_create = [](void*, opmux_device, void**) -> int32_t { return OPMUX_OK; };
    table.stream_destroy = [](void*, opmux_device, void*) {};
    table.event_record = TimedDevice::record;
    table.event_elapsed_ns = TimedDevice::elapsed;
    table.event_destroy = TimedDevice::destroy;
    registry::Batch batch;
    batch.backend.name = batch.backend.vendor = "timed";
    batch.backend.device_type = OPMUX_DEVICE_CUDA;
    batch.backend.flags = OPMUX_BACKEND_STREAM;
    batch.backend.device = registry::DeviceAccess{&device, table};
    batch.implementations.push_back(draft("copy", "v1"));
    batch.implementations[0].kernel.run = TimedDevice::run;
    batch.implementations[0].kernel.user_data = &device;
    batch.implementations[0].flags = OPMUX_IMPL_CAPTURE_SAFE;
    batch.implementations[0].caps.device_type = OPMUX_DEVICE_CUDA;
    ASSERT_TRUE(stage.runtime.core().registry().add(batch, true).refused.empty());
    Policy policy;
    policy.breaker.slow_call_us = 1'000;
    ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  }
  void call(int times) {
    for (int i = 0; i < times; ++i) EXPECT_TRUE(op(y, x).ok());
  }

  TimedDevice device;
  Stage stage;
  Operator op = stage.define(kCopy);
  Rows rows;
  TensorView y{rows.out, f32, {2, 8}, {OPMUX_DEVICE_CUDA, 0}};
  TensorView x{rows.in, f32, {2, 8}, {OPMUX_DEVICE_CUDA, 0}};
};

TEST_F(TruthOfDeviceEvents, slow_calls_on_a_stream_open_the_breaker) {
  device.kernel_ns = 2'000'000;
  for (int i = 0; i < 400 && op(y, x).ok(); ++i) {
  }
  EXPECT_GE(device.runs, 20u);
  EXPECT_LT(device.runs, 400u);
  EXPECT_EQ(stage.runtime.health().report().breakers.at(0).why, "slow-call rate too high");
  EXPECT_EQ(device.recorded, 2 * device.read);
  EXPECT_EQ(device.destroyed, device.recorded);
}

TEST_F(TruthOfDeviceEvents, one_call_in_128_is_timed) {
  device.kernel_ns = 10;
  call(1);
  const int at_first = device.read;
  EXPECT_GE(at_first, 1);
  call(4 * (static_cast<int>(dispatch::kUntimedCalls) + 1));
  EXPECT_EQ(device.read, at_first + 4);
  EXPECT_EQ(device.runs, 513u);
}

TEST_F(TruthOfDeviceEvents, calls_of_bound_plans_are_timed) {
  Plan plan = op.bind(y, x).value();
  const int before = device.read;
  for (int i = 0; i < 129; ++i) EXPECT_TRUE(plan(y, x).ok());
  EXPECT_EQ(device.read, before + 2);
}

TEST_F(TruthOfDeviceEvents, nothing_is_recorded_while_a_graph_is_captured) {
  const AmbientScope capturing({.capturing = true});
  call(200);
  EXPECT_EQ(device.runs, 200u);
  EXPECT_EQ(device.recorded, 0);
}

TEST_F(TruthOfDeviceEvents, a_call_whose_events_fail_is_served_and_not_timed) {
  device.broken = true;
  device.kernel_ns = 2'000'000;
  call(200);
  EXPECT_EQ(device.runs, 200u);
  EXPECT_TRUE(stage.runtime.health().report().breakers.empty() ||
              stage.runtime.health().report().breakers.at(0).state == BreakerState::closed);
}

TEST_F(TruthOfDeviceEvents, a_program_measures_with_them) {
  const DeviceAccess access = stage.runtime.plugins().device_access("timed").value();
  const DeviceEvent start = access.record_event().value();
  device.kernel_ns = 777;
  call(1);
  const DeviceEvent stop = access.record_event().value();
  EXPECT_EQ(access.elapsed_ns(start, stop).value(), 777u);
  EXPECT_EQ(access.elapsed_ns(start, DeviceEvent()).error().reason(), "device.event");
}

}  // namespace
}  // namespace opmux::test
