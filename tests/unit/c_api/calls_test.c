#include <math.h>

#include "c_test.h"

/* y = x / sqrt(mean(x * x)) for the rows 1 2 3 and 4 5 6. */
static void check_norms(const float* y) {
  const float rows[2] = {sqrtf(14.0f / 3.0f), sqrtf(77.0f / 3.0f)};
  for (int i = 0; i < 6; ++i) CHECK(fabsf(y[i] - (float)(i + 1) / rows[i / 3]) < 1e-4f);
}

void calls_an_operator_and_computes(void) {
  opmux_runtime* runtime;
  opmux_operator* op;
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_runtime_create(NULL, &runtime, &error) == OPMUX_OK);
  CHECK(opmux_operator_get(runtime, opmux_str_of("rms_norm"), &op, &error) == OPMUX_OK);
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor), opmux_arg_none(),
                      opmux_arg_f64(1e-6)};
  for (int i = 0; i < 3; ++i) {
    memset(y.data, 0, sizeof(y.data));
    CHECK(opmux_call_operator(op, args, 4, &error) == OPMUX_OK);
    check_norms(y.data);
  }
  CHECK(error.outcome == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void says_which_implementation_ran(void) {
  opmux_runtime* runtime = make_runtime();
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_report report = {.struct_size = sizeof(report)};
  opmux_call_options options = {.struct_size = sizeof(options), .max_threads = 2};
  opmux_operator* op = get(runtime, "rms_norm");
  CHECK(opmux_call_operator_with(op, args, 2, &options, &report, NULL) == OPMUX_OK);
  CHECK_TEXT(report.implementation, "rms_norm/reference.scalar");
  CHECK(!report.cached && !report.fell_back && report.run_ns > 0 && report.generation > 0);
  CHECK(report.select_ns > 0 && report.transform_ns == 0);
  CHECK(opmux_call_operator_with(op, args, 2, NULL, &report, NULL) == OPMUX_OK);
  CHECK(report.cached);
  CHECK(opmux_call_operator_with(op, args, 1, NULL, &report, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(report.outcome == OPMUX_INVALID_ARGUMENT && report.implementation[0] == '\0');
  opmux_runtime_destroy(runtime);
}

void reports_a_wrong_shape_with_both_numbers(void) {
  opmux_runtime* runtime = make_runtime();
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 4);
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_call_operator(get(runtime, "rms_norm"), args, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(error.outcome == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "schema.dim_mismatch"));
  CHECK_HAS(error.text, "3");
  CHECK_HAS(error.text, "4");
  CHECK(error.text_size == strlen(error.text));
  opmux_runtime_destroy(runtime);
}

void refuses_tensors_without_data_and_on_two_devices(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "rms_norm");
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_plan* plan;
  CHECK(opmux_plan_bind(op, args, 2, 0, &plan, NULL) == OPMUX_OK);
  for (int i = 0; i < 3; ++i) {
    opmux_error error = OPMUX_ERROR_INIT;
    CHECK(opmux_call_operator(op, args, 2, &error) == OPMUX_OK);
    check_norms(y.data);
    memset(y.data, 0, sizeof(y.data));
    x.tensor.data = NULL;
    CHECK(opmux_call_operator(op, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
    CHECK(equals(error.code, "schema.null_data"));
    CHECK(opmux_plan_call(plan, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
    CHECK(equals(error.code, "schema.null_data"));
    x.tensor.data = x.data;
    x.tensor.device.id = 1;
    CHECK(opmux_call_operator(op, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
    CHECK(equals(error.code, "schema.device_mismatch"));
    CHECK_HAS(error.text, "'y' is on cpu:0 and 'x' on cpu:1");
    x.tensor.device.id = 0;
    x.tensor.device.type = OPMUX_DEVICE_CUDA;
    CHECK(opmux_plan_call(plan, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
    CHECK(equals(error.code, "schema.device_mismatch"));
    x.tensor.device.type = OPMUX_DEVICE_CPU;
    for (int k = 0; k < 6; ++k) CHECK(y.data[k] == 0);
  }
  opmux_plan_destroy(plan);
  opmux_runtime_destroy(runtime);
}

void cuts_an_error_to_its_room_and_closes_it(void) {
  opmux_runtime* runtime = make_runtime();
  char room[9] = "########";
  opmux_error error = opmux_error_of(room, 8);
  opmux_operator* op;
  CHECK(opmux_operator_get(runtime, opmux_str_of("rms"), &op, &error) == OPMUX_NOT_FOUND);
  CHECK_TEXT(room, "there i");
  CHECK(error.text_size == 7);
  opmux_runtime_destroy(runtime);
}

void works_without_an_error_struct(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op;
  CHECK(opmux_operator_get(runtime, opmux_str_of("rms"), &op, NULL) == OPMUX_NOT_FOUND);
  CHECK(opmux_call_operator(get(runtime, "rms_norm"), NULL, 0, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

void keeps_code_words_alive(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error first = OPMUX_ERROR_INIT;
  opmux_error second = OPMUX_ERROR_INIT;
  opmux_operator* op;
  opmux_operator_get(runtime, opmux_str_of("a"), &op, &first);
  opmux_operator_get(runtime, opmux_str_of("b"), &op, &second);
  opmux_runtime_destroy(runtime);
  CHECK(equals(first.code, "dispatch.unknown_operator"));
  CHECK(first.code.data == second.code.data);
}

void suggests_the_nearest_operator(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_operator* op = NULL;
  CHECK(opmux_operator_get(runtime, opmux_str_of("rms_nrom"), &op, &error) == OPMUX_NOT_FOUND);
  CHECK_HAS(error.text, "did you mean 'rms_norm'?");
  CHECK(op == NULL);
  opmux_runtime_destroy(runtime);
}

void takes_an_absent_tensor_and_defaults(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "rms_norm");
  matrix x, y, weight;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  make_matrix(&weight, 3, 1);
  weight.tensor.ndim = 1;
  opmux_arg with[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor),
                      opmux_arg_tensor(&weight.tensor)};
  opmux_arg without[] = {with[0], with[1], opmux_arg_tensor(NULL)};
  for (int i = 0; i < 3; ++i) {
    CHECK(opmux_call_operator(op, with, 3, NULL) == OPMUX_OK);
    CHECK(fabsf(y.data[2] - 9.0f / sqrtf(14.0f / 3.0f)) < 1e-4f);
    CHECK(opmux_call_operator(op, without, 3, NULL) == OPMUX_OK);
    check_norms(y.data);
  }
  /* An absent argument with a default takes the default. */
  opmux_arg no_eps[] = {with[0], with[1], opmux_arg_none(), opmux_arg_none()};
  CHECK(opmux_call_operator(op, no_eps, 4, NULL) == OPMUX_OK);
  check_norms(y.data);
  opmux_runtime_destroy(runtime);
}

void takes_strided_tensors(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "rms_norm");
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  x.tensor.strides = NULL; /* Row-major. */
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  CHECK(opmux_call_operator(op, args, 2, NULL) == OPMUX_OK);
  check_norms(y.data);
  const float gapped[7] = {1, 2, 3, 77, 4, 5, 6};
  memcpy(x.data, gapped, sizeof(gapped));
  x.strides[0] = 4;
  x.tensor.strides = x.strides;
  CHECK(opmux_call_operator(op, args, 2, NULL) == OPMUX_OK);
  check_norms(y.data);
  opmux_runtime_destroy(runtime);
}

void refuses_an_unknown_tag_and_null_pointers(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "rms_norm");
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_arg args[2] = {opmux_arg_none(), opmux_arg_none()};
  args[1].tag = 99;
  CHECK(opmux_call_operator(op, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.argument"));
  CHECK_HAS(error.text, "argument 2 with tag 99");
  args[1].tag = OPMUX_ARG_TENSOR;
  args[1].value.tensor = NULL;
  CHECK(opmux_call_operator(op, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_call_operator(op, NULL, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "args is null");
  CHECK(opmux_call_operator(NULL, args, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "op is null");
  CHECK(opmux_operator_get(runtime, opmux_str_of("rms_norm"), NULL, &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "op is null");
  CHECK(opmux_runtime_create(NULL, NULL, &error) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
  opmux_runtime_destroy(NULL);
}

void refuses_more_arguments_than_any_schema_has(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_arg args[40];
  for (int i = 0; i < 40; ++i) args[i] = opmux_arg_f64(1.0);
  opmux_operator* op = get(runtime, "rms_norm");
  CHECK(opmux_call_operator(op, args, 40, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "rms_norm: takes at most 5 arguments, 40 were given");
  CHECK(opmux_call_operator(op, args, 6, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "rms_norm: takes at most 5 arguments, 6 were given");
  opmux_runtime_destroy(runtime);
}

void takes_enums_by_word_and_by_position(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "gelu_and_mul");
  matrix x, y;
  make_matrix(&x, 2, 4);
  make_matrix(&y, 2, 2);
  float by[3];
  opmux_arg styles[3] = {opmux_arg_str(opmux_str_of("tanh")), opmux_arg_enum(1), opmux_arg_enum(0)};
  for (int i = 0; i < 3; ++i) {
    opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor), styles[i]};
    CHECK(opmux_call_operator(op, args, 3, NULL) == OPMUX_OK);
    by[i] = y.data[0];
  }
  CHECK(by[0] == by[1] && by[1] != by[2]);
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor),
                      opmux_arg_str(opmux_str_of("tnah"))};
  CHECK(opmux_call_operator(op, args, 3, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "did you mean 'tanh'?");
  opmux_runtime_destroy(runtime);
}

static int32_t check_kinds(void* user_data, const opmux_call* call) {
  const opmux_arg* args = call->args;
  CHECK(call->arg_count == 7);
  CHECK(args[1].tag == OPMUX_ARG_I64 && args[1].value.i64 == -7);
  CHECK(args[2].tag == OPMUX_ARG_BOOL && args[2].value.i64 == 1);
  CHECK(args[3].tag == OPMUX_ARG_STR && args[3].value.list.size == 4);
  CHECK(memcmp(args[3].value.list.data, "word", 4) == 0);
  CHECK(args[4].tag == OPMUX_ARG_I64_LIST && args[4].value.list.size == 2);
  CHECK(((const int64_t*)args[4].value.list.data)[1] == 21);
  CHECK(args[5].tag == OPMUX_ARG_TENSOR_LIST && args[5].value.list.size == 2);
  const opmux_tensor* const* parts = args[5].value.list.data;
  CHECK(((const float*)parts[1]->data)[0] == 5.0f && parts[0]->shape[1] == 3);
  CHECK(args[6].tag == OPMUX_ARG_NONE);
  ++*(int*)user_data;
  return OPMUX_OK;
}

void passes_every_kind_of_argument(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  const char* schema =
      "kinds(out Tensor y[*], int i, bool b, str s, int[] list, Tensor[] parts, float? scale)";
  CHECK(opmux_define(runtime, opmux_str_of(schema), OPMUX_DEFINE_DATA_CHECKED, &error) == 0);
  int calls = 0;
  twice t;
  make_twice(&t, "acme", "kinds", 100);
  t.impl.op = opmux_str_of("kinds");
  t.impl.run = check_kinds;
  t.impl.user_data = &calls;
  opmux_registration* mine;
  CHECK(opmux_implement(runtime, &t.backend, &mine, &error) == OPMUX_OK);
  matrix y, a, b;
  make_matrix(&y, 2, 3);
  make_matrix(&a, 2, 3);
  make_matrix(&b, 1, 2);
  b.data[0] = 5.0f;
  const int64_t list[] = {20, 21};
  const opmux_tensor* parts[] = {&a.tensor, &b.tensor};
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor),
                      opmux_arg_i64(-7),
                      opmux_arg_bool(3),
                      opmux_arg_str(opmux_str_of("word")),
                      opmux_arg_i64_list(list, 2),
                      opmux_arg_tensor_list(parts, 2),
                      opmux_arg_none()};
  opmux_operator* op = get(runtime, "kinds");
  for (int i = 0; i < 3; ++i) CHECK(opmux_call_operator(op, args, 7, &error) == OPMUX_OK);
  CHECK(calls == 3);
  args[5] = opmux_arg_tensor_list(NULL, 2);
  CHECK(opmux_call_operator(op, args, 7, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_withdraw(mine, &error) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void names_codes_and_version(void) {
  CHECK(equals(opmux_version(), OPMUX_VERSION));
  CHECK(equals(opmux_features(), "policy_files signatures"));
  CHECK(equals(opmux_code_name(OPMUX_OK), "ok"));
  CHECK(equals(opmux_code_name(OPMUX_INVALID_ARGUMENT), "invalid_argument"));
  CHECK(equals(opmux_code_name(OPMUX_NOT_FOUND), "not_found"));
  CHECK(equals(opmux_code_name(OPMUX_ALREADY_EXISTS), "already_exists"));
  CHECK(equals(opmux_code_name(OPMUX_NO_CANDIDATE), "no_candidate"));
  CHECK(equals(opmux_code_name(OPMUX_OUTSIDE_PLAN), "outside_plan"));
  CHECK(equals(opmux_code_name(OPMUX_REVOKED), "revoked"));
  CHECK(equals(opmux_code_name(OPMUX_FROZEN), "frozen"));
  CHECK(equals(opmux_code_name(OPMUX_UNSUPPORTED), "unsupported"));
  CHECK(equals(opmux_code_name(OPMUX_UNAVAILABLE), "unavailable"));
}
