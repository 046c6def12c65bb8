#include <algorithm>

#include "backends/opencl/driver.hpp"
#include "backends/opencl/implementations.hpp"

namespace opmux::backends::opencl {
namespace {

Device& find(opmux_device device) { return Driver::get().device(device.id); }

int32_t count(void*) {
  int32_t devices = 0;
  attempted(nullptr, [&] { devices = Driver::get().count(); });
  return devices;
}

int32_t alloc(void*, opmux_device device, uint64_t size, uint64_t alignment, void** memory) {
  return attempted(nullptr, [&]() -> int32_t {
    if (alignment > find(device).alignment()) return OPMUX_RESOURCE;
    cl_int status = CL_SUCCESS;
    // OpenCL does not allow empty buffers.
    *memory = clCreateBuffer(find(device).context(), CL_MEM_READ_WRITE, std::max<size_t>(size, 1),
                             nullptr, &status);
    return outcome_of(status);
  });
}

void free_memory(void*, opmux_device, void* memory) {
  clReleaseMemObject(static_cast<cl_mem>(memory));
}

// Does not block: CPU memory must stay valid until the stream is synchronized.
cl_int enqueue_copy(cl_command_queue queue, void* to, bool to_cpu, const void* from, bool from_cpu,
                    size_t size, cl_event* event) {
  auto* target = static_cast<cl_mem>(to);
  auto* source = static_cast<cl_mem>(const_cast<void*>(from));
  if (from_cpu) {
    return clEnqueueWriteBuffer(queue, target, CL_FALSE, 0, size, from, 0, nullptr, event);
  }
  if (to_cpu) return clEnqueueReadBuffer(queue, source, CL_FALSE, 0, size, to, 0, nullptr, event);
  return clEnqueueCopyBuffer(queue, source, target, 0, 0, size, 0, nullptr, event);
}

int32_t copy(void*, void* to, opmux_device to_device, const void* from, opmux_device from_device,
             uint64_t size, void* stream) {
  return attempted(nullptr, [&]() -> int32_t {
    const bool to_cpu = to_device.type == OPMUX_DEVICE_CPU;
    const bool from_cpu = from_device.type == OPMUX_DEVICE_CPU;
    // Each device has a separate context, so buffers cannot be copied directly between devices.
    const bool apart = !to_cpu && !from_cpu && to_device.id != from_device.id;
    if (apart || (to_cpu && from_cpu)) return OPMUX_DECLINED;
    if (size == 0) return OPMUX_OK;
    Stream& on = find(to_cpu ? from_device : to_device).stream(stream);
    cl_event event = nullptr;
    check(enqueue_copy(on.queue(), to, to_cpu, from, from_cpu, size, &event), "enqueuing a copy");
    on.watch(Event(event), on.pending());
    return OPMUX_OK;
  });
}

int32_t synchronize(void*, opmux_device device, void* stream) {
  return attempted(nullptr, [&] { return find(device).stream(stream).finish(); });
}

int32_t stream_create(void*, opmux_device device, void** stream) {
  return attempted(nullptr, [&] { *stream = find(device).make_queue().release(); });
}

void stream_destroy(void*, opmux_device device, void* stream) {
  attempted(nullptr, [&] { find(device).stream(stream).finish(); });
  clReleaseCommandQueue(static_cast<cl_command_queue>(stream));
}

int32_t event_record(void*, opmux_device device, void* stream, void** event) {
  return attempted(nullptr, [&] {
    cl_event marker = nullptr;
    check(clEnqueueMarkerWithWaitList(find(device).stream(stream).queue(), 0, nullptr, &marker),
          "enqueuing a marker");
    *event = marker;
  });
}

cl_ulong ended_at(void* event) {
  auto* marker = static_cast<cl_event>(event);
  check(clWaitForEvents(1, &marker), "waiting for a marker");
  cl_ulong time = 0;
  check(clGetEventProfilingInfo(marker, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr),
        "asking for a time");
  return time;
}

int32_t event_elapsed_ns(void*, void* start, void* stop, uint64_t* nanoseconds) {
  return attempted(nullptr, [&] { *nanoseconds = ended_at(stop) - ended_at(start); });
}

void event_destroy(void*, void* event) { clReleaseEvent(static_cast<cl_event>(event)); }

}  // namespace

const opmux_device_table& device_table() {
  static constexpr opmux_device_table kTable{sizeof(opmux_device_table),
                                             0,
                                             count,
                                             alloc,
                                             free_memory,
                                             copy,
                                             synchronize,
                                             stream_create,
                                             stream_destroy,
                                             event_record,
                                             event_elapsed_ns,
                                             event_destroy};
  return kTable;
}

}  // namespace opmux::backends::opencl
