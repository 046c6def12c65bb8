// What an error of CUDA means to the host, and errors that are found after a call has returned.
#pragma once

#include <cuda_runtime_api.h>
#include <opmux/plugin.hpp>

namespace cuda_example {

// Errors that leave a device unusable for this process are OPMUX_DEVICE_LOST.
int32_t outcome_of(cudaError_t error);

// The same with the text of the error.
int32_t report(opmux_error* into, cudaError_t error);

// The host, once it has introduced itself.
void set_host(const opmux_host* host);

// Tells the host if what was put into the stream so far ends with an error.
cudaError_t watch(opmux_device device, cudaStream_t stream);

}  // namespace cuda_example
