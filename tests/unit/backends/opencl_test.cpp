#include "opencl.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "forked.hpp"
#include "library.hpp"

namespace opmux::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(OpenCl, rms_norm_runs_on_the_device_and_is_right) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      SCOPED_TRACE(name(dtype) + " " + name(layout));
      const Tensor x = random(dtype, {3, 5, 133}, layout), weight = random(dtype, {133});
      const DeviceTensor y = send(make(dtype, {3, 5, 133}, layout));
      EXPECT_EQ(ran("rms_norm", nullptr, y.view(), send(x).view(), send(weight).view(), 1e-5),
                "rms_norm/opencl.kernel");
      expect_close(y.fetch(), expected_rms_norm(x, &weight, 1e-5, pairwise_error(133)));
    }
  }
}

TEST_F(OpenCl, silu_and_mul_runs_on_the_device_and_is_right) {
  for (opmux_dtype dtype : kFloats) {
    SCOPED_TRACE(name(dtype));
    const Tensor x = random(dtype, {2, 3, 70}, Layout::padded_rows);
    const DeviceTensor y = send(make(dtype, {2, 3, 35}));
    EXPECT_EQ(ran("silu_and_mul", nullptr, y.view(), send(x).view()), "silu_and_mul/opencl.kernel");
    expect_close(y.fetch(), expected_gated(x, silu, [](double) { return 16 * kEps; }));
  }
}

TEST_F(OpenCl, softmax_and_matmul_run_on_the_device_and_agree_with_the_reference) {
  for (opmux_dtype dtype : kFloats) {
    SCOPED_TRACE(name(dtype));
    const Tensor a = random(dtype, {2, 19, 70}, Layout::swapped_leading),
                 b = random(dtype, {2, 70, 33}, Layout::padded_rows, 2);
    const DeviceTensor product = send(make(dtype, {2, 19, 33}, Layout::strided_elements)),
                       weights = send(make(dtype, {2, 19, 70}));
    EXPECT_EQ(ran("matmul", nullptr, product.view(), send(a).view(), send(b).view()),
              "matmul/opencl.kernel");
    expect_as_reference("matmul", product.fetch(), TensorView(a.c()), TensorView(b.c()));
    EXPECT_EQ(ran("softmax", nullptr, weights.view(), send(a).view(), 0.5),
              "softmax/opencl.kernel");
    expect_as_reference("softmax", weights.fetch(), TensorView(a.c()), 0.5);
  }
}

TEST_F(OpenCl, rotary_embedding_turns_queries_and_keys_on_the_device) {
  for (const char* style : {"neox", "gptj"}) {
    SCOPED_TRACE(style);
    const Tensor q = random(kBF16, {5, 4, 24}), k = random(kBF16, {5, 2, 24}),
                 table = random(kF32, {9, 16});
    const Tensor positions = make(kI32, {5}).fill([](int64_t i) { return double(8 - i); });
    const DeviceTensor q_there = send(q), k_there = send(k);
    EXPECT_EQ(ran("rotary_embedding", nullptr, q_there.view(), k_there.view(),
                  send(positions).view(), send(table).view(), style),
              "rotary_embedding/opencl.kernel");
    const Tensor turned_q = q_there.fetch(), turned_k = k_there.fetch();
    Tensor expected_q = q, expected_k = k;
    const PolicyScope reference(runtime, {.require = {"reference"}});
    ASSERT_TRUE(op("rotary_embedding")(TensorView(expected_q.c()), TensorView(expected_k.c()),
                                       TensorView(positions.c()), TensorView(table.c()), style)
                    .ok());
    expect_near(turned_q, expected_q);
    expect_near(turned_k, expected_k);
  }
}

TEST_F(OpenCl, positions_outside_of_the_table_are_found_by_the_device_and_nothing_is_turned) {
  const Tensor q = random(kF32, {3, 2, 8}), table = random(kF32, {4, 8});
  const Tensor positions = make(kI64, {3}).fill([](int64_t i) { return double(i == 2 ? 4 : i); });
  const DeviceTensor there = send(q);
  EXPECT_EQ(ran("rotary_embedding", nullptr, there.view(), none, send(positions).view(),
                send(table).view()),
            "rotary_embedding/opencl.kernel");
  EXPECT_EQ(access.synchronize().code(), Code::invalid_argument);
  EXPECT_EQ(there.fetch().bytes(), q.bytes());
  ASSERT_EQ(runtime.health().device_errors().size(), 1u);
  EXPECT_THAT(runtime.health().device_errors()[0].suspects,
              ElementsAre("rotary_embedding/opencl.kernel"));
  EXPECT_THAT(events(), Contains(HasSubstr("a position is outside the cos_sin table")));
}

TEST_F(OpenCl, a_call_returns_before_the_device_is_done_and_streams_keep_their_order) {
  const Tensor x = random(kF32, {4, 64});
  const DeviceStream stream = access.create_stream().value();
  const DeviceTensor from = send(x, stream), between = send(make(kF32, {4, 64}), stream),
                     to = send(make(kF32, {4, 32}), stream);
  // Run each once, so that everything is prepared.
  ran("rms_norm", stream.get(), between.view(), from.view());
  ran("silu_and_mul", stream.get(), to.view(), from.view());
  Gate gate(stream);
  EXPECT_EQ(ran("rms_norm", stream.get(), between.view(), from.view()), "rms_norm/opencl.kernel");
  EXPECT_EQ(ran("silu_and_mul", stream.get(), to.view(), between.view()),
            "silu_and_mul/opencl.kernel");
  EXPECT_FALSE(done(stream));
  gate.open();
  const Tensor normal = between.fetch(stream.get());
  expect_close(normal, expected_rms_norm(x, nullptr, 1e-6, pairwise_error(64)));
  expect_close(to.fetch(stream.get()),
               expected_gated(normal, silu, [](double) { return 16 * kEps; }));
}

TEST_F(OpenCl, a_stream_does_not_wait_for_another) {
  const Tensor x = random(kF32, {4, 64});
  const DeviceStream held = access.create_stream().value(), free = access.create_stream().value();
  const DeviceTensor from = send(x, free), first = send(make(kF32, {4, 64}), free),
                     second = send(make(kF32, {4, 64}), free);
  ASSERT_TRUE(free.synchronize().ok());
  Gate gate(held);
  EXPECT_EQ(ran("rms_norm", held.get(), first.view(), from.view()), "rms_norm/opencl.kernel");
  EXPECT_EQ(ran("rms_norm", free.get(), second.view(), from.view()), "rms_norm/opencl.kernel");
  expect_close(second.fetch(free.get()), expected_rms_norm(x, nullptr, 1e-6, pairwise_error(64)));
  EXPECT_FALSE(done(held));
  gate.open();
  expect_close(first.fetch(held.get()), expected_rms_norm(x, nullptr, 1e-6, pairwise_error(64)));
}

TEST_F(OpenCl, threads_share_a_prepared_kernel_without_mixing_arguments) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const DeviceStream stream = access.create_stream().value();
      for (unsigned i = 0; i < 40; ++i) {
        const Tensor x = random(kF32, {2, 40 + t}, Layout::contiguous, 100 * t + i);
        const DeviceTensor from = send(x, stream), y = send(make(kF32, {2, 40 + t}), stream);
        EXPECT_EQ(ran("rms_norm", stream.get(), y.view(), from.view()), "rms_norm/opencl.kernel");
        expect_close(y.fetch(stream.get()),
                     expected_rms_norm(x, nullptr, 1e-6, pairwise_error(40)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OpenCl, an_error_after_the_call_reaches_synchronize_and_the_runtime) {
  const DeviceStream stream = access.create_stream().value();
  const DeviceTensor x = send(random(kF32, {4, 64}), stream), y = send(make(kF32, {4, 32}), stream);
  ASSERT_TRUE(stream.synchronize().ok());
  {
    Gate gate(stream);
    EXPECT_EQ(ran("silu_and_mul", stream.get(), y.view(), x.view()), "silu_and_mul/opencl.kernel");
    EXPECT_TRUE(runtime.health().device_errors().empty());
    gate.break_down();
  }
  EXPECT_EQ(stream.synchronize().code(), Code::failed);
  EXPECT_TRUE(stream.synchronize().ok());

  const std::vector<DeviceError> errors = runtime.health().device_errors();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].device, (Device{OPMUX_DEVICE_OPENCL, 0}));
  EXPECT_LT(errors[0].code, 0);
  EXPECT_EQ(errors[0].count, 1u);
  EXPECT_THAT(errors[0].suspects, ElementsAre("silu_and_mul/opencl.kernel"));
  EXPECT_THAT(events(),
              Contains(HasSubstr("most recent on its stream: silu_and_mul/opencl.kernel")));
  // The errors are not counted as failures, and the device is not lost.
  for (const CallStats& stats : runtime.stats()) EXPECT_EQ(stats.failed, 0u);
  EXPECT_TRUE(runtime.health().lost_devices().empty());
  EXPECT_EQ(ran("silu_and_mul", nullptr, y.view(), x.view()), "silu_and_mul/opencl.kernel");
  EXPECT_TRUE(access.synchronize().ok());
}

TEST_F(OpenCl, a_plan_runs_on_the_stream_of_the_device) {
  const Tensor x = random(kF16, {4, 64});
  const DeviceTensor from = send(x), y = send(make(kF16, {4, 64}));
  Plan plan = op("rms_norm").bind(y.view(), from.view()).value();
  EXPECT_EQ(plan.implementation(), "rms_norm/opencl.kernel");
  ASSERT_TRUE(plan(y.view(), from.view()).ok());
  expect_close(y.fetch(), expected_rms_norm(x, nullptr, 1e-6, pairwise_error(64)));
}

TEST_F(OpenCl, tensors_must_be_on_one_device) {
  const Tensor x = random(kF32, {4, 64});
  const DeviceTensor y = send(make(kF32, {4, 64}));
  const Status status = op("rms_norm")(y.view(), TensorView(x.c()));
  EXPECT_EQ(status.reason(), "schema.device_mismatch");
  EXPECT_THAT(std::string(status.message()), HasSubstr("'y' is on opencl:0 and 'x' on cpu:0"));
}

TEST_F(OpenCl, different_buffers_do_not_overlap_whatever_their_handles) {
  const DeviceTensor x = send(random(kF32, {1 << 16})), y = send(make(kF32, {1 << 16}));
  ASSERT_TRUE(op("softmax").bind(y.view(), x.view()));
  EXPECT_EQ(op("softmax").bind(x.view(), x.view()).error().reason(), "schema.overlap");
}

TEST_F(OpenCl, a_forked_child_is_refused_with_a_reason) {
  const DeviceTensor x = send(random(kF32, {4, 64})), y = send(make(kF32, {4, 64}));
  ASSERT_EQ(ran("rms_norm", nullptr, y.view(), x.view()), "rms_norm/opencl.kernel");
  EXPECT_TRUE(test::true_in_forked_child([&] {
    const Status status = op("rms_norm")(y.view(), x.view());
    return status.code() == Code::no_candidate &&
           status.message().find("backend.forked") != std::string_view::npos &&
           !runtime.plugins().device_access("opencl");
  }));
}

TEST_F(OpenCl, events_measure_the_time_between_them) {
  const LoadedPlugin plugin = load_library(OPMUX_TEST_OPENCL_LIBRARY);
  const opmux_device_table& table = *plugin.backend().device;
  void* const user_data = plugin.backend().user_data;
  const opmux_device device{OPMUX_DEVICE_OPENCL, 0};
  const DeviceTensor x = send(random(kF32, {512, 512})), y = send(make(kF32, {512, 512}));
  void *start = nullptr, *stop = nullptr;
  uint64_t whole = 0, nothing = 1;
  ASSERT_EQ(table.event_record(user_data, device, nullptr, &start), OPMUX_OK);
  ran("rms_norm", nullptr, y.view(), x.view());
  ASSERT_EQ(table.event_record(user_data, device, nullptr, &stop), OPMUX_OK);
  EXPECT_EQ(table.event_elapsed_ns(user_data, start, stop, &whole), OPMUX_OK);
  EXPECT_EQ(table.event_elapsed_ns(user_data, stop, stop, &nothing), OPMUX_OK);
  EXPECT_GT(whole, 1000u);
  EXPECT_EQ(nothing, 0u);
  table.event_destroy(user_data, start);
  table.event_destroy(user_data, stop);
}

TEST_F(OpenCl, an_allocation_beyond_the_device_memory_is_refused) {
  EXPECT_EQ(access.allocate(uint64_t{1} << 60).error().code(), Code::resource);
  EXPECT_FALSE(access.allocate(8, access.count()));
  EXPECT_FALSE(access.create_stream(-1));
  EXPECT_EQ(runtime.plugins().device_access("reference").error().reason(), "device.none");
  EXPECT_EQ(runtime.plugins().device_access("opncl").error().reason(), "registry.unknown_backend");
}

}  // namespace
}  // namespace opmux::testing
