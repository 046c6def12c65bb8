/* Tests the plugin in a program: which implementation ran, its results, and what it refuses. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <opmux/opmux.h>

static int failures = 0;

static void expect(int holds, const char* what, const char* found) {
  if (holds) return;
  fprintf(stderr, "expected: %s; found: %s\n", what, found);
  ++failures;
}

static opmux_tensor tensor_of(float* data, int64_t* shape) {
  opmux_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.type = OPMUX_DEVICE_CPU;
  tensor.ndim = 2;
  tensor.dtype.code = OPMUX_DTYPE_FLOAT;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static void computes_a_row(opmux_operator* rms_norm) {
  float x[] = {3, 4}, y[2] = {0, 0};
  int64_t shape[] = {1, 2};
  opmux_tensor in = tensor_of(x, shape), out = tensor_of(y, shape);
  opmux_arg args[] = {opmux_arg_tensor(&out), opmux_arg_tensor(&in)};
  opmux_report report = {.struct_size = sizeof report};
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_call_operator_with(rms_norm, args, 2, NULL, &report, &error);
  expect(strcmp(report.implementation, "rms_norm/acme.scalar") == 0, "rms_norm/acme.scalar ran",
         report.implementation[0] ? report.implementation : error.text);
  expect(fabsf(y[0] - 0.848528f) < 1e-5f && fabsf(y[1] - 1.131371f) < 1e-5f, "0.848528 1.131371",
         "other numbers");
}

static void refuses_eps_of_zero(opmux_operator* rms_norm) {
  float x[] = {3, 4}, y[2];
  int64_t shape[] = {1, 2};
  opmux_tensor in = tensor_of(x, shape), out = tensor_of(y, shape);
  opmux_arg args[] = {opmux_arg_tensor(&out), opmux_arg_tensor(&in), opmux_arg_none(),
                      opmux_arg_f64(0)};
  opmux_error error = OPMUX_ERROR_INIT;
  const int32_t outcome = opmux_call_operator(rms_norm, args, 4, &error);
  expect(outcome == OPMUX_NO_CANDIDATE && strstr(error.text, "acme.eps") != NULL,
         "refused for acme.eps", error.text);
}

int main(void) {
  /* Only this plugin may run, because results of another implementation would prove nothing. */
  const opmux_str only[] = {OPMUX_STR("rms_norm/acme.*")};
  opmux_policy policy;
  opmux_runtime* runtime;
  opmux_operator* rms_norm;
  opmux_error error = OPMUX_ERROR_INIT;
  memset(&policy, 0, sizeof policy);
  policy.struct_size = sizeof policy;
  policy.require.items = only;
  policy.require.count = 1;
  if (opmux_runtime_create(NULL, &runtime, &error) ||
      opmux_operator_get(runtime, opmux_str_of("rms_norm"), &rms_norm, &error) ||
      opmux_scope_push(runtime, &policy, &error)) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  computes_a_row(rms_norm);
  refuses_eps_of_zero(rms_norm);
  opmux_scope_pop(NULL);
  opmux_runtime_destroy(runtime);
  return failures != 0;
}
