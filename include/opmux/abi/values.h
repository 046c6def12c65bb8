/*
 * Value types of the plugin contract: texts, element types, devices, tensors and arguments. Part of
 * <opmux/abi.h>, which plugins include instead.
 *
 * These types are frozen: no field is ever added, so they carry no size and arrays of them need no
 * stride. The structs of abi.h, which may grow, are made of them.
 *
 *    float elements[6] = {0};
 *    int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
 *    opmux_tensor x = {.data = elements, .device = {OPMUX_DEVICE_CPU, 0}, .ndim = 2,
 *                      .dtype = {OPMUX_DTYPE_FLOAT, 32, 1}, .shape = shape, .strides = strides};
 */
#ifndef OPMUX_ABI_VALUES_H
#define OPMUX_ABI_VALUES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text that is not zero-terminated, usually UTF-8. Null data with size 0 is the empty string. */
typedef struct opmux_str {
  const char* data;
  size_t size;
} opmux_str;

/* OPMUX_STR("H") initialises an opmux_str from a literal, also at file scope; opmux_str_of("H")
   makes one in an expression and treats null as the empty string. Both borrow the text. */
#define OPMUX_STR(literal) {(literal), sizeof(literal) - 1}

static inline opmux_str opmux_str_of(const char* text) {
  opmux_str s;
  s.data = text;
  s.size = 0;
  if (text) {
    while (text[s.size]) ++s.size;
  }
  return s;
}

/* Element type, with the layout of DLDataType. */
typedef struct opmux_dtype {
  uint8_t code;   /* OPMUX_DTYPE_* */
  uint8_t bits;   /* of one lane */
  uint16_t lanes; /* 1, except for pairs of OPMUX_DTYPE_FLOAT4_E2M1FN: 2 */
} opmux_dtype;

#define OPMUX_DTYPE_INT 0
#define OPMUX_DTYPE_UINT 1
#define OPMUX_DTYPE_FLOAT 2
#define OPMUX_DTYPE_BFLOAT 4
#define OPMUX_DTYPE_BOOL 6
#define OPMUX_DTYPE_FLOAT8_E4M3FN 10 /* fn: no infinities; uz: no negative zero, NaN is 0x80 */
#define OPMUX_DTYPE_FLOAT8_E4M3FNUZ 11
#define OPMUX_DTYPE_FLOAT8_E5M2 12
#define OPMUX_DTYPE_FLOAT8_E5M2FNUZ 13
#define OPMUX_DTYPE_FLOAT4_E2M1FN 17 /* bits 4, lanes 2: a byte holds two; dimensions count bytes */

/* Device, with the layout of DLDevice. */
typedef struct opmux_device {
  int32_t type; /* OPMUX_DEVICE_*, numbers of DLDeviceType */
  int32_t id;   /* index among devices of that type */
} opmux_device;

#define OPMUX_DEVICE_CPU 1
#define OPMUX_DEVICE_CUDA 2
#define OPMUX_DEVICE_CUDA_HOST 3
#define OPMUX_DEVICE_OPENCL 4
#define OPMUX_DEVICE_VULKAN 7
#define OPMUX_DEVICE_METAL 8 /* also named mps */
#define OPMUX_DEVICE_VPI 9
#define OPMUX_DEVICE_ROCM 10 /* also named hip */
#define OPMUX_DEVICE_ROCM_HOST 11
#define OPMUX_DEVICE_EXT_DEV 12 /* torch's PrivateUse1; also named npu */
#define OPMUX_DEVICE_CUDA_MANAGED 13
#define OPMUX_DEVICE_ONEAPI 14 /* also named xpu */
#define OPMUX_DEVICE_WEBGPU 15
#define OPMUX_DEVICE_HEXAGON 16
#define OPMUX_DEVICE_MAIA 17
#define OPMUX_DEVICE_TRN 18
#define OPMUX_DEVICE_VENDOR 256 /* first of the types that vendors define; see device_name */
#define OPMUX_DEVICE_LAST 65535 /* largest number of a type */

/* Tensor, with the layout of DLTensor. Strides count elements. They are never null in calls that a
   plugin receives; a caller may pass null for row-major. */
typedef struct opmux_tensor {
  void* data; /* address, or handle such as a cl_mem */
  opmux_device device;
  int32_t ndim; /* number of dimensions, at most OPMUX_MAX_RANK */
  opmux_dtype dtype;
  int64_t* shape;       /* `ndim` sizes */
  int64_t* strides;     /* `ndim` strides */
  uint64_t byte_offset; /* add it to `data` to get the first element */
} opmux_tensor;

/* Kinds of arguments: the `tag` of an opmux_arg. */
#define OPMUX_ARG_NONE 0 /* an absent optional argument; the value is unspecified */
#define OPMUX_ARG_TENSOR 1
#define OPMUX_ARG_I64 2
#define OPMUX_ARG_F64 3
#define OPMUX_ARG_BOOL 4        /* in i64: 0 or 1 */
#define OPMUX_ARG_ENUM 5        /* in i64: position of the word in the schema's enum */
#define OPMUX_ARG_STR 6         /* in list: bytes */
#define OPMUX_ARG_I64_LIST 7    /* in list: const int64_t, size in elements */
#define OPMUX_ARG_TENSOR_LIST 8 /* in list: const opmux_tensor* const, size in elements */

/* Access to a tensor argument, and properties of arguments: the `flags` of an opmux_arg. */
#define OPMUX_ACCESS_IN 1u
#define OPMUX_ACCESS_OUT 2u
#define OPMUX_ACCESS_INOUT 3u
#define OPMUX_ARG_READ_ONLY 4u /* memory that must not be written regardless of the access */
#define OPMUX_ARG_CONSTANT 8u  /* declared `const` in the schema: may be packed */

/* A borrowed array; the tag of the argument says of what. */
typedef struct opmux_list {
  const void* data;
  uint64_t size;
} opmux_list;

/* The value of an argument; the tag says which member is set. */
typedef union opmux_value {
  const opmux_tensor* tensor;
  int64_t i64;
  double f64;
  opmux_list list;
} opmux_value;

/* One argument, 32 bytes. */
typedef struct opmux_arg {
  uint32_t tag;   /* OPMUX_ARG_* */
  uint32_t flags; /* OPMUX_ACCESS_*, OPMUX_ARG_READ_ONLY, _CONSTANT; set by the host */
  opmux_value value;
  uint64_t reserved;
} opmux_arg;

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_ABI_VALUES_H */
