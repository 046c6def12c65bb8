// The device functions (memory, copies, streams, events) of this backend.
#pragma once

#include <opmux/abi.h>

namespace cuda_example {

extern const opmux_device_table kDeviceTable;

}  // namespace cuda_example
