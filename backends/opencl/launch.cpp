#include "backends/opencl/launch.hpp"

#include <algorithm>

namespace opmux::backends::opencl {
namespace {

// Limits the global size to below 2^16 items per dimension, because drivers may compile a kernel a
// second time for larger sizes; the kernels loop over the rest.
constexpr size_t kMostItems = 65535;

}  // namespace

Grid grid_for(cl_long groups, size_t items, bool square) {
  const auto wanted = static_cast<size_t>(std::max<cl_long>(groups, 1));
  return {std::min(wanted, kMostItems / items), items, square};
}

Launch::Launch(Device& device, std::string_view source, const char* kernel,
               const std::string& options) {
  cl_int status = CL_SUCCESS;
  kernel_.reset(clCreateKernel(device.program(source, options), kernel, &status));
  check(status, "creating a kernel");
}

void Launch::set(cl_uint index, const plugin::TensorArg& tensor) {
  if (!tensor) return set(index, NoTensor{});
  set_memory(index, static_cast<cl_mem>(tensor.c().data));
}

void Launch::set(cl_uint index, NoTensor) { set_bytes(index, sizeof(cl_mem), nullptr); }

void Launch::set(cl_uint index, const Memory& memory) { set_memory(index, memory.get()); }

void Launch::set_memory(cl_uint index, cl_mem memory) {
  set_bytes(index, sizeof(cl_mem), static_cast<const void*>(&memory));
}

void Launch::set_bytes(cl_uint index, size_t size, const void* value) {
  check(clSetKernelArg(kernel_.get(), index, size, value), "setting an argument of a kernel");
}

Event Launch::enqueue_kernel(cl_command_queue queue, const Grid& grid) {
  const size_t global[] = {grid.groups * grid.items, grid.items};
  const size_t local[] = {grid.items, grid.items};
  cl_event event = nullptr;
  check(clEnqueueNDRangeKernel(queue, kernel_.get(), grid.square ? 2 : 1, nullptr, global, local, 0,
                               nullptr, &event),
        "enqueuing a kernel");
  return Event(event);
}

void wait_for(const Event& event) {
  cl_event handle = event.get();
  check(clWaitForEvents(1, &handle), "running a kernel on empty tensors");
}

const char* word_of(opmux_dtype dtype) {
  if (plugin::same(dtype, plugin::f32)) return "f32";
  if (plugin::same(dtype, plugin::f16)) return "f16";
  if (plugin::same(dtype, plugin::bf16)) return "bf16";
  throw plugin::Declined("opencl.dtype", "a tensor is neither f32 nor f16 nor bf16");
}

int32_t check_devices(const plugin::Call& call) {
  const opmux_device wanted = call.c().device;
  for (uint32_t i = 0; i < call.c().arg_count; ++i) {
    if (!call.holds_tensor(i)) continue;
    const opmux_device device = call.tensor(i).c().device;
    if (device.type == wanted.type && device.id == wanted.id) continue;
    return plugin::decline(
        call.error(), "opencl.device",
        "argument " + std::to_string(i) + " must be on the same device as the first");
  }
  return OPMUX_OK;
}

std::string options(size_t local,
                    std::initializer_list<std::pair<const char*, const char*>> defined) {
  std::string all = "-D LOCAL=" + std::to_string(local);
  for (const auto& [name, value] : defined) all += std::string(" -D ") + name + "=" + value;
  return all;
}

}  // namespace opmux::backends::opencl
