#define OPMUX_STATIC_PLUGIN
#include "c_test.h"

static int32_t run_fill(void* user_data, const opmux_call* call) {
  (void)user_data;
  ((float*)call->args[0].value.tensor->data)[0] = 42.0f;
  return OPMUX_OK;
}

static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                    .op = OPMUX_STR("linked.fill"),
                                    .variant = OPMUX_STR("v1"),
                                    .priority = -1,
                                    .run = run_fill}};
static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("linked"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("linked"),
                                          .priority = -1,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof(opmux_impl)}};
static const opmux_schema_text operators[] = {
    {sizeof(opmux_schema_text), 0, OPMUX_STR("linked.fill(out Tensor y[...], Tensor x[...])")}};

OPMUX_PLUGIN_ENTRY(linked) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("linked");
  out->version = opmux_str_of("1.0");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
  return OPMUX_OK;
}

void a_linked_plugin_is_loaded(void) {
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_plugin_load_static(runtime, opmux_plugin_query_v1_linked, &error) == OPMUX_OK);
  matrix x, y;
  make_matrix(&x, 2, 2);
  make_matrix(&y, 2, 2);
  opmux_arg args[2] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  CHECK_TEXT(runner(get(runtime, "linked.fill"), args, 2), "linked.fill/linked.v1");
  CHECK(y.data[0] == 42.0f);
  CHECK(opmux_plugin_load_static(runtime, NULL, &error) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

static int inits;

static int32_t count_init(void* user_data, const opmux_host* host, opmux_error* error) {
  (void)host;
  (void)error;
  ++*(int*)user_data;
  return OPMUX_OK;
}

OPMUX_PLUGIN_ENTRY(counted) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("counted");
  out->user_data = &inits;
  out->init = count_init;
  return OPMUX_OK;
}

void user_data_of_a_plugin_reaches_init(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_plugin_load_static(runtime, opmux_plugin_query_v1_counted, NULL) == OPMUX_OK);
  CHECK(inits == 1);
  opmux_runtime_destroy(runtime);
}

void a_file_that_is_no_plugin_is_refused(void) {
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_plugin_load(runtime, opmux_str_of("acme.so"), &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "trust.relative"));
  CHECK(opmux_plugin_load(runtime, opmux_str_of("/nowhere/acme.so"), &error) == OPMUX_UNAVAILABLE);
  CHECK_HAS(error.text, "/nowhere/acme.so");
  opmux_runtime_destroy(runtime);
}
