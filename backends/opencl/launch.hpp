// Kernels made ready by plan() and enqueued by run().
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

// What a kernel gets for a tensor that the call leaves out.
struct NoTensor {};

// How many groups work, and of how many items each.
struct Grid {
  size_t groups;
  size_t items;
  bool square = false;  // items by items
};
Grid grid_for(cl_long groups, size_t items, bool square = false);

// A kernel with its arguments to be set: clSetKernelArg and the enqueuing after it belong together,
// so one thread at a time does them.
class Launch {
 public:
  Launch(Device& device, std::string_view source, const char* kernel, const std::string& options);

  // Sets all arguments in order and enqueues.
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

// Waits for a command of plan(): a driver may finish compiling when a kernel first runs, and that
// must not be a call's first time.
void wait_for(const Event& event);

// A group's items where a group makes a row.
inline constexpr size_t kRowItems = 64;

// The word of a dtype in the kernels' texts: "f16".
const char* word_of(opmux_dtype dtype);

// "-D LOCAL=64 -D X=f16"
std::string options(size_t local,
                    std::initializer_list<std::pair<const char*, const char*>> defined);

// Declines a call whose tensors are not all on its device: their handles would mean nothing there.
int32_t check_devices(const plugin::Call& call);

// Runs enqueue(queue, pending), which returns the event of the last command, and watches that.
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
