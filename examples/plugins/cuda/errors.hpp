// Maps CUDA errors to opmux outcomes, and reports errors that occur after a call has returned.
#pragma once

#include <cuda_runtime_api.h>
#include <opmux/plugin.hpp>

namespace cuda_example {

// Errors after which the process cannot use the device any more map to OPMUX_DEVICE_LOST.
int32_t outcome_of(cudaError_t error);

// Writes the error's text to `into` and returns outcome_of(error).
int32_t report(opmux_error* into, cudaError_t error);

// Sets the host to which asynchronous errors are reported.
void set_host(const opmux_host* host);

// Enqueues a callback that reports to the host if the commands enqueued so far end with an error.
cudaError_t watch(opmux_device device, cudaStream_t stream);

}  // namespace cuda_example
