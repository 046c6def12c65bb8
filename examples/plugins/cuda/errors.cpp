#include "errors.hpp"

#include <atomic>
#include <memory>

namespace cuda_example {
namespace {

std::atomic<const opmux_host*> told_host{nullptr};

struct Watched {
  opmux_device device;
};

void CUDART_CB on_done(cudaStream_t stream, cudaError_t status, void* context) {
  const std::unique_ptr<Watched> watched(static_cast<Watched*>(context));
  const opmux_host* host = told_host.load();
  if (status == cudaSuccess || host == nullptr) return;
  const opmux_str text = opmux_str_of(cudaGetErrorString(status));
  host->log(host->user_data, 3, text);
  host->report_device_error(host->user_data, watched->device, stream, status);
}

}  // namespace

int32_t outcome_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return OPMUX_OK;
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources: return OPMUX_RESOURCE;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorDevicesUnavailable: return OPMUX_DEVICE_LOST;
    default: return OPMUX_FAILED;
  }
}

int32_t report(opmux_error* into, cudaError_t error) {
  if (error == cudaSuccess) return OPMUX_OK;
  return opmux::plugin::report(into, outcome_of(error), "cuda.error", cudaGetErrorString(error));
}

void set_host(const opmux_host* host) { told_host.store(host); }

// Uses cudaStreamAddCallback because a function queued by cudaLaunchHostFunc is not called after an
// error, while a callback is and receives the error.
cudaError_t watch(opmux_device device, cudaStream_t stream) {
  auto watched = std::make_unique<Watched>(Watched{device});
  const cudaError_t error = cudaStreamAddCallback(stream, on_done, watched.get(), 0);
  if (error == cudaSuccess) watched.release();
  return error;
}

}  // namespace cuda_example
