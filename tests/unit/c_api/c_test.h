/* Helpers of the C API tests. */
#ifndef OPMUX_TESTS_UNIT_CAPI_C_TEST_H
#define OPMUX_TESTS_UNIT_CAPI_C_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opmux/opmux.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

#define CHECK_TEXT(text, expected)                                                          \
  do {                                                                                      \
    if (strcmp((text), (expected)) != 0) {                                                  \
      fprintf(stderr, "%s:%d: \"%s\" != \"%s\"\n", __FILE__, __LINE__, (text), (expected)); \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

#define CHECK_HAS(text, part)                                                              \
  do {                                                                                     \
    if (strstr((text), (part)) == NULL) {                                                  \
      fprintf(stderr, "%s:%d: \"%s\" lacks \"%s\"\n", __FILE__, __LINE__, (text), (part)); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

#define C_TEST(name) void name(void);
#include "tests.inc"
#undef C_TEST

/* A runtime with only the reference and an empty environment. */
opmux_runtime* make_runtime(void);
opmux_operator* get(opmux_runtime* runtime, const char* name);

/* Rows of three floats, row-major: y and x of rms_norm. */
typedef struct matrix {
  float data[12];
  int64_t shape[2];
  int64_t strides[2];
  opmux_tensor tensor;
} matrix;
void make_matrix(matrix* m, int64_t rows, int64_t columns);

/* "twice/acme.ROW": a test operator with implementations that write their number. */
#define TWICE "twice(out Tensor y[N], Tensor x[N], int times = 2)"
typedef struct twice {
  opmux_impl impl;
  opmux_backend backend;
  int32_t calls;
  int32_t outcome;
  const char* sentence;
} twice;
void make_twice(twice* t, const char* backend, const char* variant, int32_t priority);

int equals(opmux_str text, const char* expected);
/* The implementation that runs this call; the test ends if the call fails. */
const char* runner(opmux_operator* op, const opmux_arg* args, uint32_t count);

#endif
