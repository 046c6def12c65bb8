// How memory and streams of CUDA are reached.
#pragma once

#include <opmux/abi.h>

namespace cuda_example {

extern const opmux_device_table kDeviceTable;

}  // namespace cuda_example
