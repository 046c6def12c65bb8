/*
 * Specialization points of the C API: typed questions in shared code that backends answer. Part of
 * <opmux/opmux.h>, which includes this header and states the rules that hold for every function.
 */
#ifndef OPMUX_C_POINTS_H
#define OPMUX_C_POINTS_H

#include <opmux/c/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A point has a signature, "gemm.tile_n(Device) -> int"; the types are int, float, bool, str and
 * Device. Arguments and answers are made by opmux_arg_i64, _f64, _bool and _str; a Device is an
 * I64, as opmux_arg_device makes it.
 *
 *    opmux_arg device = opmux_arg_device(OPMUX_DEVICE_CPU, 0), tile = opmux_arg_i64(64);
 *    opmux_str question = OPMUX_STR("gemm.tile_n(Device) -> int");
 *    if (opmux_point_ask(runtime, question, &device, 1, &tile, &error) == OPMUX_OK)
 *      printf("a backend wants tiles of %d\n", (int)tile.value.i64);
 *    else
 *      printf("the default is %d\n", (int)tile.value.i64);
 */

/* A device as an argument of a point. */
static inline opmux_arg opmux_arg_device(int32_t type, int32_t id) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_I64;
  arg.value.i64 = (int64_t)((uint64_t)(uint32_t)type | (uint64_t)(uint32_t)id << 32);
  return arg;
}

/* Makes a point known, so that a mistyped answer is refused when it is given; opmux_point_ask does
   it too. The same signature again succeeds. Fails with OPMUX_ALREADY_EXISTS ("point.signature") if
   the name has other types, or OPMUX_INVALID_ARGUMENT ("point.syntax", "point.type"). */
OPMUX_EXPORT int32_t opmux_point_declare(opmux_runtime* runtime, opmux_str signature,
                                         opmux_error* error);

/* Asks the backends in the order of their priority and writes the first answer. Text in it stays
   valid until this thread asks again. Returns OPMUX_DECLINED ("point.no_answer"), and leaves
   *answer as it was, if none of them answers. Fails as opmux_point_declare does, or with
   OPMUX_INVALID_ARGUMENT ("point.arguments") for other arguments than the point has. */
OPMUX_EXPORT int32_t opmux_point_ask(opmux_runtime* runtime, opmux_str signature,
                                     const opmux_arg* args, uint32_t count, opmux_arg* answer,
                                     opmux_error* error);

/* Answers a point: returns OPMUX_OK with *answer set, or OPMUX_DECLINED for "no answer". Called
   from any thread. Text in the answer must stay valid until the next call on this thread. */
typedef int32_t (*opmux_point_fn)(void* context, const opmux_arg* args, uint32_t count,
                                  opmux_arg* answer);

/* Registers an answer on behalf of a backend that exists, until opmux_withdraw. `context` must stay
   valid as long. Fails with OPMUX_NOT_FOUND ("point.backend", or "point.unknown" for a point that
   is not declared), OPMUX_ALREADY_EXISTS ("point.duplicate", "point.signature") or OPMUX_FROZEN. */
OPMUX_EXPORT int32_t opmux_point_answer(opmux_runtime* runtime, opmux_str signature,
                                        opmux_str backend, opmux_point_fn function, void* context,
                                        opmux_registration** registration, opmux_error* error);

/* All points that code declared or that a plugin answers, as JSON of docs/schemas/points.json. */
OPMUX_EXPORT int32_t opmux_list_points(opmux_runtime* runtime, char* buffer, size_t capacity,
                                       size_t* size, opmux_error* error);

/* One point with the backends in the order in which they are asked, as OPMUX_FORMAT_TEXT or
   OPMUX_FORMAT_JSON. `point` is a name, or a signature, which is then declared. With the arguments
   of the point it is asked too. Fails with OPMUX_NOT_FOUND ("point.unknown") and as
   opmux_point_ask. */
OPMUX_EXPORT int32_t opmux_point_explain(opmux_runtime* runtime, opmux_str point,
                                         const opmux_arg* args, uint32_t count, uint32_t format,
                                         char* buffer, size_t capacity, size_t* size,
                                         opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_C_POINTS_H */
