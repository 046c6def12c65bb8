// The devices of all OpenCL platforms, enumerated once per process.
#pragma once

#include <opmux/abi.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/handles.hpp"
#include "backends/opencl/stream.hpp"

namespace opmux::backends::opencl {

// One device with a separate context. `id` is the device id in opmux_device. Thread-safe.
class Device {
 public:
  Device(cl_device_id device, int32_t id);

  opmux_device c() const { return {OPMUX_DEVICE_OPENCL, id_}; }
  cl_context context() const { return context_.get(); }
  // Alignment of every buffer, in bytes.
  uint64_t alignment() const;
  // The stream of a call: `queue`, or the device's default queue if it is null.
  Stream& stream(void* queue) {
    return streams_.of(queue != nullptr ? static_cast<cl_command_queue>(queue) : queue_.get(),
                       queue);
  }
  Queue make_queue() const;
  // Compiles on the first call with these options and caches the result. Throws with the compiler's
  // log.
  cl_program program(std::string_view source, const std::string& options);

 private:
  cl_device_id device_;
  int32_t id_;
  Context context_;
  Queue queue_;
  Streams streams_;
  std::mutex building_;
  std::map<std::pair<const char*, std::string>, Program> programs_;
};

class Driver {
 public:
  // Enumerates the devices on the first call. Never destroyed, because driver threads may still be
  // running.
  static Driver& get();

  // Why no device was found; empty if there is at least one.
  const std::string& missing() const { return missing_; }
  int32_t count() const { return static_cast<int32_t>(devices_.size()); }
  // Throws if the device does not exist.
  Device& device(int32_t id) const;

 private:
  Driver();
  std::vector<std::unique_ptr<Device>> devices_;
  std::string missing_;
};

}  // namespace opmux::backends::opencl
