#pragma once

#include <stdint.h>

/* How a module that knows one library's tensors from the inside tells opmux what they are. Such a
 * module exports a PyCapsule named OPMUX_READER_CAPSULE as its attribute `reader`. */
#ifdef __cplusplus
extern "C" {
#endif

#define OPMUX_READER_CAPSULE "opmux.reader"
#define OPMUX_READER_VERSION 3u

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
  uint32_t locked;  /* not 0: its library would not write to it here */
} opmux_read_tensor;

/* A tensor as it was read before, and another one to be compared with it. */
typedef struct opmux_known_tensor {
  PyObject* object; /* of the type that was read before */
  const int64_t* shape;
  const int64_t* strides;
  int32_t ndim;
  uint32_t dtype;
  uint32_t written; /* not 0: the call writes to it */
  void* data;       /* of the object; set by reread() */
} opmux_known_tensor;

/* Outcomes of read(). With GRAD, LAZY and MODE all has been read nevertheless. */
#define OPMUX_READ_OK 0
#define OPMUX_READ_GRAD 1    /* autograd would have to see the call */
#define OPMUX_READ_LAZY 2    /* conjugate or negative bit: the memory does not hold the values */
#define OPMUX_READ_REROUTE 3 /* a subclass or a fake tensor: its library must see the call */
#define OPMUX_READ_PLACE 4   /* memory that this reader does not know */
#define OPMUX_READ_ERROR 5   /* a Python exception is set */
#define OPMUX_READ_MODE 6    /* a mode of its library, as those that trace, must see the call */

typedef struct opmux_reader {
  uint32_t version; /* OPMUX_READER_VERSION */
  uint32_t reserved;
  const char* name; /* "torch 2.13.0" */
  int32_t (*read)(PyObject* object, opmux_read_tensor* out);
  /* 1 if read() would say OK of each of them, they look as they did before and may be written to
   * where the call does so; else 0, and read() tells more. */
  int32_t (*reread)(opmux_known_tensor* all, uint32_t count);
  /* A new tensor in the memory of the CPU, row-major, its values whatever they are; null with a
   * Python exception. */
  PyObject* (*allocate)(const int64_t* shape, int32_t ndim, uint32_t dtype);
} opmux_reader;

#ifdef __cplusplus
}
#endif
