/* Checks that the value types equal those of the real dlpack.h; included by a C and by a C++
   file. */
#include <dlpack/dlpack.h>
#include <opmux/abi.h>

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #ours);
#define SAME_FIELD(ours, field, theirs, their_field)                                       \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #ours "." #field); \
  static_assert(sizeof(((ours*)0)->field) == sizeof(((theirs*)0)->their_field), #ours "." #field);
#define SAME_NUMBER(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours);

SAME_SIZE(opmux_dtype, DLDataType)
SAME_FIELD(opmux_dtype, code, DLDataType, code)
SAME_FIELD(opmux_dtype, bits, DLDataType, bits)
SAME_FIELD(opmux_dtype, lanes, DLDataType, lanes)
SAME_NUMBER(OPMUX_DTYPE_INT, kDLInt)
SAME_NUMBER(OPMUX_DTYPE_UINT, kDLUInt)
SAME_NUMBER(OPMUX_DTYPE_FLOAT, kDLFloat)
SAME_NUMBER(OPMUX_DTYPE_BFLOAT, kDLBfloat)
SAME_NUMBER(OPMUX_DTYPE_BOOL, kDLBool)

SAME_SIZE(opmux_device, DLDevice)
SAME_FIELD(opmux_device, type, DLDevice, device_type)
SAME_FIELD(opmux_device, id, DLDevice, device_id)
SAME_NUMBER(OPMUX_DEVICE_CPU, kDLCPU)
SAME_NUMBER(OPMUX_DEVICE_CUDA, kDLCUDA)
SAME_NUMBER(OPMUX_DEVICE_OPENCL, kDLOpenCL)

SAME_SIZE(opmux_tensor, DLTensor)
SAME_FIELD(opmux_tensor, data, DLTensor, data)
SAME_FIELD(opmux_tensor, device, DLTensor, device)
SAME_FIELD(opmux_tensor, ndim, DLTensor, ndim)
SAME_FIELD(opmux_tensor, dtype, DLTensor, dtype)
SAME_FIELD(opmux_tensor, shape, DLTensor, shape)
SAME_FIELD(opmux_tensor, strides, DLTensor, strides)
SAME_FIELD(opmux_tensor, byte_offset, DLTensor, byte_offset)
