/*
 * Interface of tensor readers: compiled modules that know the tensors of one Python library (torch,
 * for example) from the inside and describe them to opmux without going through Python attributes.
 *
 * Such a module exports a PyCapsule named OPMUX_READER_CAPSULE as its attribute `reader`, which
 * points to an opmux_reader with static lifetime. All functions are called with the GIL held.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name of the capsule. */
#define OPMUX_READER_CAPSULE "opmux.reader"
/* opmux refuses a reader with another version. */
#define OPMUX_READER_VERSION 5u

typedef struct _object PyObject;

/* Description of a tensor. Shape and strides belong to the tensor and stay valid while it does not
   change. */
typedef struct opmux_read_tensor {
  void* data; /* first element, offset included */
  const int64_t* shape;
  const int64_t* strides; /* in elements; null = row-major */
  int32_t ndim;
  uint32_t dtype; /* code | bits << 8 | lanes << 16, DLPack's codes */
  int32_t device_type;
  int32_t device_id;
  uint64_t version; /* grows when the data change in place; 0 = not known */
  uint32_t locked;  /* not 0: its library would refuse to write to it */
} opmux_read_tensor;

/* The description of a tensor from an earlier call, and an object to compare with it. */
typedef struct opmux_known_tensor {
  PyObject* object; /* has the same type as the tensor that was read */
  const int64_t* shape;
  const int64_t* strides;
  int32_t ndim;
  uint32_t dtype;
  uint32_t written; /* not 0: the call writes to it */
  void** data;      /* where reread() stores the first element of `object` */
} opmux_known_tensor;

/* Results of read(). With GRAD, LAZY and MODE the description is filled in nevertheless. */
#define OPMUX_READ_OK 0      /* the description is complete */
#define OPMUX_READ_GRAD 1    /* autograd must see the call */
#define OPMUX_READ_LAZY 2    /* conjugate or negative bit: the memory does not hold the values */
#define OPMUX_READ_REROUTE 3 /* a subclass or a fake tensor: its library must handle the call */
#define OPMUX_READ_PLACE 4   /* memory of a kind that this reader does not support */
#define OPMUX_READ_ERROR 5   /* a Python exception is set */
#define OPMUX_READ_MODE 6    /* a mode of the library, such as tracing, must see the call */

/* The functions of a reader. None of them may be null. */
typedef struct opmux_reader {
  uint32_t version; /* OPMUX_READER_VERSION */
  uint32_t reserved;
  const char* name; /* "torch 2.13.0" */
  /* Describes a tensor; returns an OPMUX_READ_*. `object` is borrowed. */
  int32_t (*read)(PyObject* object, opmux_read_tensor* out);
  /* Returns 1 if read() would return OK for each object, all of them look as described, and those
     with `written` may be written to; stores `*data` of each and, unless `state` is null, `*state`
     to what ambient() returns. Otherwise returns 0; the caller then uses read(). */
  int32_t (*reread)(opmux_known_tensor* all, uint32_t count, uint32_t* state);
  /* Returns a new row-major tensor in CPU memory with uninitialised elements, as a new reference;
     null with a Python exception set. */
  PyObject* (*allocate)(const int64_t* shape, int32_t ndim, uint32_t dtype);
  /* Returns the state of the library for this thread as OPMUX_AMBIENT_* bits. Called for every
     call whose tensors reread() has not compared. */
  uint32_t (*ambient)(void);
} opmux_reader;

#ifdef __cplusplus
}
#endif
