#pragma once

#include <stdint.h>

/* How a module that knows one library's tensors from the inside tells opmux what they are. Such a
 * module exports a PyCapsule named OPMUX_READER_CAPSULE as its attribute `reader`. */
#ifdef __cplusplus
extern "C" {
#endif

#define OPMUX_READER_CAPSULE "opmux.reader"
#define OPMUX_READER_VERSION 2u

typedef struct _object PyObject;

/* What was read; shape and strides belong to the tensor and stay while it is not changed. */
typedef struct opmux_read_tensor {
  void* data;
  const int64_t* shape;
  const int64_t* strides; /* in elements; null = row-major */
  int32_t ndim;
  uint32_t dtype; /* code | bits << 8 | lanes << 16, DLPack's codes */
  int32_t device_type;
  int32_t device_id;
  uint64_t version; /* grows when the data change in place; 0 = not known */
} opmux_read_tensor;

/* Outcomes of read(). With GRAD and LAZY all has been read nevertheless. */
#define OPMUX_READ_OK 0
#define OPMUX_READ_GRAD 1    /* autograd would have to see the call */
#define OPMUX_READ_LAZY 2    /* conjugate or negative bit: the memory does not hold the values */
#define OPMUX_READ_REROUTE 3 /* a subclass or a fake tensor: its library must see the call */
#define OPMUX_READ_PLACE 4   /* memory that this reader does not know */
#define OPMUX_READ_ERROR 5   /* a Python exception is set */

typedef struct opmux_reader {
  uint32_t version; /* OPMUX_READER_VERSION */
  uint32_t reserved;
  const char* name; /* "torch 2.13.0" */
  int32_t (*read)(PyObject* object, opmux_read_tensor* out);
} opmux_reader;

#ifdef __cplusplus
}
#endif
