#include "c_test.h"

#define TILE "gemm.tile_n(Device) -> int"

static int32_t answer_tile(void* context, const opmux_arg* args, uint32_t count,
                           opmux_arg* answer) {
  CHECK(count == 1);
  if ((int32_t)args[0].value.i64 != OPMUX_DEVICE_CPU) return OPMUX_DECLINED;
  *answer = opmux_arg_i64(*(const int64_t*)context);
  return OPMUX_OK;
}

/* A runtime with the backend "acme". */
static opmux_runtime* make_runtime_with(twice* acme, opmux_registration** held) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  make_twice(acme, "acme", "v1", -1);
  CHECK(opmux_implement(runtime, &acme->backend, held, NULL) == OPMUX_OK);
  return runtime;
}

void a_point_is_asked_and_answered(void) {
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_registration *held, *answer;
  twice acme;
  opmux_runtime* runtime = make_runtime_with(&acme, &held);
  const opmux_str tile = opmux_str_of(TILE), backend = opmux_str_of("acme");
  const opmux_arg cpu = opmux_arg_device(OPMUX_DEVICE_CPU, 0), gpu = opmux_arg_device(2, 1);
  opmux_arg size = opmux_arg_i64(-7);
  int64_t value = 0;
  CHECK(opmux_point_answer(runtime, tile, backend, answer_tile, &value, &answer, &error) ==
        OPMUX_NOT_FOUND);
  CHECK(equals(error.code, "point.unknown"));
  CHECK(opmux_point_declare(runtime, tile, &error) == OPMUX_OK);
  CHECK(opmux_point_ask(runtime, tile, &cpu, 1, &size, &error) == OPMUX_DECLINED);
  CHECK(equals(error.code, "point.no_answer") && size.value.i64 == -7);
  CHECK(opmux_point_answer(runtime, tile, backend, answer_tile, &value, &answer, &error) ==
        OPMUX_OK);
  CHECK(opmux_point_ask(runtime, tile, &cpu, 1, &size, &error) == OPMUX_OK);
  CHECK(size.tag == OPMUX_ARG_I64 && size.value.i64 == 0);
  CHECK(opmux_point_ask(runtime, tile, &gpu, 1, &size, &error) == OPMUX_DECLINED);
  CHECK(opmux_withdraw(answer, &error) == OPMUX_OK);
  CHECK(opmux_point_ask(runtime, tile, &cpu, 1, &size, &error) == OPMUX_DECLINED);
  CHECK(opmux_withdraw(held, &error) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void a_point_of_another_type_is_refused(void) {
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_registration *held, *answer;
  twice acme;
  opmux_runtime* runtime = make_runtime_with(&acme, &held);
  const opmux_arg cpu = opmux_arg_device(OPMUX_DEVICE_CPU, 0), half = opmux_arg_f64(0.5);
  opmux_arg size = opmux_arg_i64(-7);
  int64_t value = 64;
  CHECK(opmux_point_declare(runtime, opmux_str_of(TILE), &error) == OPMUX_OK);
  CHECK(opmux_point_answer(runtime, opmux_str_of(TILE), opmux_str_of("acme"), answer_tile, &value,
                           &answer, &error) == OPMUX_OK);
  const opmux_str other = opmux_str_of("gemm.tile_n(Device) -> float");
  CHECK(opmux_point_ask(runtime, other, &cpu, 1, &size, &error) == OPMUX_ALREADY_EXISTS);
  CHECK(equals(error.code, "point.signature") && size.value.i64 == -7);
  CHECK(opmux_point_ask(runtime, opmux_str_of(TILE), &half, 1, &size, &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "point.arguments"));
  CHECK(opmux_point_ask(runtime, opmux_str_of(TILE), NULL, 1, &size, &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_point_declare(runtime, opmux_str_of("gemm"), &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "point.syntax"));
  opmux_registration_keep(answer);
  opmux_registration_keep(held);
  opmux_runtime_destroy(runtime);
}

void points_are_listed_and_explained(void) {
  char text[2048];
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_registration *held, *answer;
  twice acme;
  opmux_runtime* runtime = make_runtime_with(&acme, &held);
  const opmux_arg cpu = opmux_arg_device(OPMUX_DEVICE_CPU, 0);
  int64_t value = 64;
  const opmux_str tile = opmux_str_of(TILE), name = opmux_str_of("gemm.tile_n");
  CHECK(opmux_point_declare(runtime, tile, &error) == OPMUX_OK);
  CHECK(opmux_point_answer(runtime, tile, opmux_str_of("acme"), answer_tile, &value, &answer,
                           &error) == OPMUX_OK);
  CHECK(opmux_list_points(runtime, text, sizeof text, NULL, &error) == OPMUX_OK);
  CHECK_HAS(text, "\"signature\":\"gemm.tile_n(Device) -> int\",\"declared\":true");
  CHECK_HAS(text, "\"backend\":\"acme\"");
  CHECK(opmux_point_explain(runtime, name, &cpu, 1, OPMUX_FORMAT_TEXT, text, sizeof text, NULL,
                            &error) == OPMUX_OK);
  CHECK_TEXT(text, "gemm.tile_n(Device) -> int   64\n  acme   chosen   priority 100\n");
  CHECK(opmux_backend_enable(runtime, opmux_str_of("acme"), 0, &error) == OPMUX_OK);
  CHECK(opmux_point_explain(runtime, name, NULL, 0, OPMUX_FORMAT_JSON, text, sizeof text, NULL,
                            &error) == OPMUX_OK);
  CHECK_HAS(text, "\"verdict\":\"refused\",\"code\":\"backend.disabled\"");
  CHECK(opmux_point_explain(runtime, opmux_str_of("gemm.tile_m"), NULL, 0, OPMUX_FORMAT_TEXT, text,
                            sizeof text, NULL, &error) == OPMUX_NOT_FOUND);
  CHECK_HAS(error.text, "did you mean 'gemm.tile_n'?");
  CHECK(opmux_point_explain(runtime, name, NULL, 0, 7, text, sizeof text, NULL, &error) ==
        OPMUX_INVALID_ARGUMENT);
  opmux_registration_keep(answer);
  opmux_registration_keep(held);
  opmux_runtime_destroy(runtime);
}
