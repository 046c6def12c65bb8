// A runtime with the opencl backend, and test tensors in the memory of its first device.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <opmux/opmux.hpp>

#include <mutex>
#include <string>
#include <vector>

#include "expected.hpp"

namespace opmux::testing {

// A CPU tensor and its copy on the device.
class DeviceTensor {
 public:
  DeviceTensor(const DeviceAccess& access, const Tensor& here, void* stream = nullptr)
      : access_(access), here_(here), memory_(access.allocate(here.bytes().size()).value()) {
    EXPECT_TRUE(access_.copy_in(memory_, here_.bytes().data(), here_.bytes().size(), stream).ok());
    EXPECT_TRUE(access_.synchronize(stream).ok());
  }
  TensorView view() const {
    opmux_tensor there = here_.c();
    there.data = memory_.handle();
    there.device = {memory_.device().type, memory_.device().id};
    return TensorView(there);
  }
  // The contents after the stream has finished.
  Tensor fetch(void* stream = nullptr) const {
    Tensor now = here_;
    EXPECT_TRUE(access_.copy_out(now.c().data, memory_, now.bytes().size(), stream).ok());
    EXPECT_TRUE(access_.synchronize(stream).ok());
    return now;
  }

 private:
  DeviceAccess access_;
  Tensor here_;
  DeviceMemory memory_;
};

// Blocks the commands enqueued after it in a stream, until it is opened or broken.
class Gate {
 public:
  explicit Gate(const DeviceStream& stream) {
    auto* queue = static_cast<cl_command_queue>(stream.get());
    cl_context context = nullptr;
    EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr), 0);
    event_ = clCreateUserEvent(context, nullptr);
    EXPECT_EQ(clEnqueueBarrierWithWaitList(queue, 1, &event_, &barrier_), CL_SUCCESS);
  }
  // PoCL 3.1 ends the process if a command fails whose event has been released.
  ~Gate() {
    clReleaseEvent(barrier_);
    clReleaseEvent(event_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { EXPECT_EQ(clSetUserEventStatus(event_, CL_COMPLETE), CL_SUCCESS); }
  // Commands that wait for the gate end with an error.
  void break_down() { EXPECT_EQ(clSetUserEventStatus(event_, -5), CL_SUCCESS); }

 private:
  cl_event event_ = nullptr, barrier_ = nullptr;
};

// Whether all commands enqueued in a stream so far are done.
inline bool done(const DeviceStream& stream) {
  cl_event marker = nullptr;
  cl_int status = CL_QUEUED;
  EXPECT_EQ(
      clEnqueueMarkerWithWaitList(static_cast<cl_command_queue>(stream.get()), 0, nullptr, &marker),
      CL_SUCCESS);
  clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  clReleaseEvent(marker);
  return status <= CL_COMPLETE;
}

class OpenCl : public ::testing::Test {
 protected:
  OpenCl()
      : runtime(Runtime::create({.sink =
                                     [this](const Event& event) {
                                       const std::lock_guard lock(mutex_);
                                       events_.push_back(event.code + ": " + event.text);
                                     }})
                    .value()),
        access(runtime.plugins().device_access("opencl").value()) {}

  Operator op(const char* name) const { return runtime.op(name).value(); }
  DeviceTensor send(const Tensor& tensor) const { return {access, tensor}; }
  DeviceTensor send(const Tensor& tensor, const DeviceStream& stream) const {
    return {access, tensor, stream.get()};
  }
  // The implementation that ran.
  template <class... Args>
  std::string ran(const char* name, void* stream, const Args&... args) const {
    CallReport report;
    opmux::CallOptions options;
    options.stream = stream;
    const Status status = op(name).with(report, options)(args...);
    EXPECT_TRUE(status.ok()) << status.message();
    return report.implementation;
  }
  static void expect_near(const Tensor& y, const Tensor& expected) {
    for (int64_t i = 0; i < y.elements(); ++i) {
      const double rounding = 2 * Format::of(y.dtype()).half_ulp() * std::fabs(expected.get(i));
      ASSERT_NEAR(y.get(i), expected.get(i), rounding + 1e-4) << i;
    }
    EXPECT_TRUE(y.gaps_intact());
  }
  template <class... Args>
  void expect_as_reference(const char* name, const Tensor& y, const Args&... args) {
    Tensor expected = y;
    const PolicyScope reference(runtime, {.require = {"reference"}});
    ASSERT_TRUE(op(name)(TensorView(expected.c()), args...).ok());
    expect_near(y, expected);
  }
  std::vector<std::string> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> events_;

 public:
  Runtime runtime;
  DeviceAccess access;
};

}  // namespace opmux::testing
