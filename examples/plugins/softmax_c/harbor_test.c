/* Tests the implementation that ran, its result, the calls it declines, and an unavailable
   backend. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opmux/opmux.h>

static int failures = 0;

static void expect(int holds, const char* what, const char* found) {
  if (holds) return;
  fprintf(stderr, "expected: %s; found: %s\n", what, found);
  ++failures;
}

typedef struct answer {
  int32_t outcome;
  opmux_report report;
  char text[512];
  float y[6];
} answer;

/* Computes softmax of {{0, ln 3, -inf}, {1, 1, 1}} with a scale. */
static answer call(opmux_runtime* runtime, double scale) {
  float x[6] = {0, logf(3), -INFINITY, 1, 1, 1};
  int64_t shape[2] = {2, 3};
  answer said;
  memset(&said, 0, sizeof said);
  said.report.struct_size = sizeof said.report;
  opmux_tensor in = {.data = x, .device = {OPMUX_DEVICE_CPU, 0}, .ndim = 2, .shape = shape};
  in.dtype.code = OPMUX_DTYPE_FLOAT;
  in.dtype.bits = 32;
  in.dtype.lanes = 1;
  opmux_tensor out = in;
  out.data = said.y;
  opmux_arg args[] = {opmux_arg_tensor(&out), opmux_arg_tensor(&in), opmux_arg_f64(scale)};
  opmux_error error = opmux_error_of(said.text, sizeof said.text);
  opmux_operator* softmax;
  said.outcome = opmux_operator_get(runtime, opmux_str_of("softmax"), &softmax, &error);
  if (said.outcome == OPMUX_OK) {
    said.outcome = opmux_call_operator_with(softmax, args, 3, NULL, &said.report, &error);
  }
  return said;
}

/* A runtime in which only harbor may run softmax. */
static opmux_runtime* runtime_for_harbor(opmux_error* error) {
  const opmux_str only[] = {OPMUX_STR("softmax/harbor.*")};
  opmux_policy policy;
  opmux_runtime* runtime = NULL;
  memset(&policy, 0, sizeof policy);
  policy.struct_size = sizeof policy;
  policy.require.items = only;
  policy.require.count = 1;
  if (opmux_runtime_create(NULL, &runtime, error)) return NULL;
  if (opmux_scope_push(runtime, &policy, error) == OPMUX_OK) return runtime;
  opmux_runtime_destroy(runtime);
  return NULL;
}

static void computes(opmux_runtime* runtime) {
  const answer said = call(runtime, 1);
  expect(strcmp(said.report.implementation, "softmax/harbor.online") == 0, "softmax/harbor.online",
         said.report.implementation[0] ? said.report.implementation : said.text);
  expect(fabsf(said.y[0] - 0.25F) < 1e-6F && fabsf(said.y[1] - 0.75F) < 1e-6F && said.y[2] == 0,
         "0.25 0.75 0", "different values");
  expect(fabsf(said.y[4] - 1.0F / 3) < 1e-6F, "1/3", "a different value");
}

static void refuses(opmux_runtime* runtime, double scale, const char* why) {
  const answer said = call(runtime, scale);
  expect(said.outcome == OPMUX_NO_CANDIDATE && strstr(said.text, why) != NULL, why, said.text);
}

int main(void) {
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_runtime* runtime = runtime_for_harbor(&error);
  if (!runtime) return fprintf(stderr, "%s\n", error.text), 1;
  computes(runtime);
  refuses(runtime, -1, "harbor.scale");
  opmux_scope_pop(NULL);
  opmux_runtime_destroy(runtime);

  setenv("HARBOR_CLOSED", "1", 1);
  runtime = runtime_for_harbor(&error);
  if (!runtime) return fprintf(stderr, "%s\n", error.text), 1;
  refuses(runtime, 1, "HARBOR_CLOSED is set");
  opmux_scope_pop(NULL);
  opmux_runtime_destroy(runtime);
  return failures != 0;
}
