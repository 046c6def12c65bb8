/*
 * The C API: the runtime of <opmux/opmux.hpp> with the structs of abi.h.
 *
 *    opmux_runtime* engine = NULL;
 *    opmux_operator* softmax = NULL;
 *    opmux_error why = OPMUX_ERROR_INIT;
 *    float x_data[4] = {1, 2, 3, 4}, y_data[4];
 *    int64_t shape[2] = {1, 4};
 *    opmux_device cpu = {OPMUX_DEVICE_CPU, 0};
 *    opmux_dtype f32 = {OPMUX_DTYPE_FLOAT, 32, 1};
 *    opmux_tensor x = {x_data, cpu, 2, f32, shape, NULL, 0}, y = x;
 *    y.data = y_data;
 *    opmux_arg both[2] = {opmux_arg_tensor(&y), opmux_arg_tensor(&x)};
 *    if (opmux_runtime_create(NULL, &engine, &why) == OPMUX_OK &&
 *        opmux_operator_get(engine, opmux_str_of("softmax"), &softmax, &why) == OPMUX_OK &&
 *        opmux_call_operator(softmax, both, 2, &why) == OPMUX_OK) {
 *      printf("%g\n", y_data[3]);
 *    } else {
 *      fprintf(stderr, "%s\n", why.text);
 *    }
 *    opmux_runtime_destroy(engine);
 *
 * Rules that hold for every function:
 * - It returns OPMUX_OK (0), another outcome of abi.h, or a code below. On failure it writes
 *   nothing to out parameters; `error`, which may be null, receives the reason. Outputs of an
 *   operator that ran and failed may be partly written.
 * - Pointers that are passed in are borrowed for the call. A handle written to an out parameter
 *   belongs to the caller if a function to destroy it exists; destroy it before its runtime.
 * - It may be called from any thread, several at a time, unless its comment says otherwise.
 * - Structs carry struct_size as in abi.h: set it to sizeof and all unused fields to zero. Fields
 *   are only ever appended.
 * - No exception leaves it, and it never prints, aborts or exits. If there is not enough memory, it
 *   returns OPMUX_RESOURCE ("c.memory") and changes nothing, and the runtime stays usable.
 *
 * The examples below are statements of a function. They assume `opmux_runtime* runtime`,
 * `opmux_error error = OPMUX_ERROR_INIT`, <stdio.h>, <stdlib.h> and <string.h>; those on calls also
 * assume an operator `opmux_operator* op` and its arguments `opmux_arg args[2]`, here those of
 * softmax.
 */
#ifndef OPMUX_OPMUX_H
#define OPMUX_OPMUX_H

#include <opmux/c/call.h>
#include <opmux/c/common.h>
#include <opmux/c/health.h>
#include <opmux/c/points.h>
#include <opmux/c/policy.h>
#include <opmux/c/query.h>
#include <opmux/c/runtime.h>

#endif /* OPMUX_OPMUX_H */
