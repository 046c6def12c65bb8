// Kernels prepared by plan() and enqueued by run().
#pragma once

#include <opmux/plugin.hpp>

#include <concepts>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "backends/opencl/driver.hpp"

namespace opmux::backends::opencl {

// Kernel argument for a tensor that the call leaves out.
struct NoTensor {};

// Number of work-groups and items per group.
struct Grid {
  size_t groups;
  size_t items;
  bool square = false;  // Groups of items x items.
};
Grid grid_for(cl_long groups, size_t items, bool square = false);

// A kernel whose arguments are set at each launch. A mutex serializes launches, because
// clSetKernelArg and the enqueue that follows must not interleave with another thread's.
class Launch {
 public:
  Launch(Device& device, std::string_view source, const char* kernel, const std::string& options);

  // Sets all arguments in order and enqueues the kernel.
  template <class... Args>
  Event enqueue(cl_command_queue queue, const Grid& grid, const Args&... args) {
    const std::lock_guard lock(mutex_);
    cl_uint index = 0;
    (set(index++, args), ...);
    return enqueue_kernel(queue, grid);
  }

 private:
  void set(cl_uint index, const plugin::TensorArg& tensor);
  void set(cl_uint index, NoTensor);
  void set(cl_uint index, const Memory& memory);
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void set(cl_uint index, const T& value) {
    set_bytes(index, sizeof value, &value);
  }
  void set_memory(cl_uint index, cl_mem memory);
  void set_bytes(cl_uint index, size_t size, const void* value);
  Event enqueue_kernel(cl_command_queue queue, const Grid& grid);

  std::mutex mutex_;
  Kernel kernel_;
};

// Waits for a command that plan() enqueued. Drivers may finish compiling a kernel when it first
// runs, so plan() runs it once to keep that delay out of the first call.
void wait_for(const Event& event);

// Items per group in kernels that process one row per group.
inline constexpr size_t kRowItems = 64;

// The name of a dtype in the kernel sources, e.g. "f16".
const char* word_of(opmux_dtype dtype);

// Formats build options, e.g. "-D LOCAL=64 -D X=f16".
std::string options(size_t local,
                    std::initializer_list<std::pair<const char*, const char*>> defined);

// Declines a call whose tensors are not all on its device, because memory handles are valid on one
// device only.
int32_t check_devices(const plugin::Call& call);

// Calls enqueue(queue, pending), which returns the event of the last command, and watches that
// event.
template <class Enqueue>
int32_t on_stream(const plugin::Call& call, const Enqueue& enqueue) {
  if (const int32_t other = check_devices(call); other != OPMUX_OK) return other;
  return attempted(call.error(), [&] {
    Stream& stream = Driver::get().device(call.c().device.id).stream(call.stream());
    std::shared_ptr<Pending> pending = stream.pending();
    Event event = enqueue(stream.queue(), *pending);
    stream.watch(std::move(event), std::move(pending));
  });
}

}  // namespace opmux::backends::opencl
