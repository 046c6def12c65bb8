#include "device_table.hpp"

#include "errors.hpp"

namespace cuda_example {
namespace {

cudaStream_t of(void* stream) { return static_cast<cudaStream_t>(stream); }

// Makes a device current for the calling thread; the destructor restores the previous one.
class On {
 public:
  explicit On(opmux_device device) {
    cudaGetDevice(&before_);
    error_ = cudaSetDevice(device.id);
  }
  ~On() { cudaSetDevice(before_); }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

  template <class Body>
  int32_t run(Body&& body) {
    return outcome_of(error_ == cudaSuccess ? body() : error_);
  }

 private:
  int before_ = 0;
  cudaError_t error_;
};

int32_t count(void*) {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

int32_t alloc(void*, opmux_device device, uint64_t size, uint64_t alignment, void** memory) {
  constexpr uint64_t kAlignment = 256;  // Guaranteed by cudaMalloc.
  if (alignment > kAlignment) return OPMUX_RESOURCE;
  return On(device).run([&] { return cudaMalloc(memory, size); });
}

void free_memory(void*, opmux_device device, void* memory) {
  On(device).run([&] { return cudaFree(memory); });
}

int32_t copy(void*, void* to, opmux_device to_device, const void* from, opmux_device from_device,
             uint64_t size, void* stream) {
  const opmux_device device = to_device.type == OPMUX_DEVICE_CPU ? from_device : to_device;
  return On(device).run(
      [&] { return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, of(stream)); });
}

int32_t synchronize(void*, opmux_device device, void* stream) {
  return On(device).run([&] { return cudaStreamSynchronize(of(stream)); });
}

int32_t stream_create(void*, opmux_device device, void** stream) {
  return On(device).run([&] {
    cudaStream_t made = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    *stream = made;
    return error;
  });
}

void stream_destroy(void*, opmux_device device, void* stream) {
  On(device).run([&] {
    cudaStreamSynchronize(of(stream));
    return cudaStreamDestroy(of(stream));
  });
}

int32_t event_record(void*, opmux_device device, void* stream, void** event) {
  return On(device).run([&] {
    cudaEvent_t made = nullptr;
    cudaError_t error = cudaEventCreate(&made);
    if (error == cudaSuccess) error = cudaEventRecord(made, of(stream));
    *event = made;
    return error;
  });
}

int32_t event_elapsed_ns(void*, void* start, void* stop, uint64_t* nanoseconds) {
  cudaError_t error = cudaEventSynchronize(static_cast<cudaEvent_t>(stop));
  float milliseconds = 0;
  if (error == cudaSuccess) {
    error = cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(start),
                                 static_cast<cudaEvent_t>(stop));
  }
  *nanoseconds = static_cast<uint64_t>(milliseconds * 1e6f);
  return outcome_of(error);
}

void event_destroy(void*, void* event) { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }

}  // namespace

const opmux_device_table kDeviceTable{sizeof(opmux_device_table),
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

}  // namespace cuda_example
