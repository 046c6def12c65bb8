// A plugin that reports which of two it is, from its constructor and from its query function.
#include <opmux/abi.h>

/* Defined by the test program only. */
__attribute__((weak)) void race_ran(int which, int stage);

static int32_t run(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_OK;
}

__attribute__((constructor)) static void begin(void) {
  if (race_ran) race_ran(RACE_WHICH, 0);
}

OPMUX_EXPORT int32_t opmux_plugin_query_v1(const opmux_host* host, opmux_plugin* out) {
  static const opmux_schema_text schema[] = {
      {sizeof(opmux_schema_text), 0, OPMUX_STR("race.copy(out Tensor y[N], Tensor x[N])")}};
  static const opmux_impl impls[] = {
      {.struct_size = sizeof(opmux_impl),
       .op = OPMUX_STR("race.copy"),
       .variant = OPMUX_STR("v1"),
       .signature = OPMUX_STR("race.copy(out Tensor y[N], Tensor x[N])"),
       .priority = -1,
       .run = run}};
  static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                            .name = OPMUX_STR("race"),
                                            .kind = OPMUX_KIND_DEFAULT,
                                            .device_type = OPMUX_DEVICE_CPU,
                                            .priority = -1,
                                            .impls = impls,
                                            .impl_count = 1,
                                            .impl_stride = sizeof(opmux_impl)}};
  (void)host;
  if (race_ran) race_ran(RACE_WHICH, 1);
  *out = (opmux_plugin){.struct_size = sizeof(opmux_plugin),
                        .abi_major = OPMUX_ABI_MAJOR,
                        .abi_minor = OPMUX_ABI_MINOR,
                        .name = OPMUX_STR("race"),
                        .version = OPMUX_STR("1"),
                        .backends = backends,
                        .backend_count = 1,
                        .backend_stride = sizeof(opmux_backend),
                        .operators = schema,
                        .operator_count = 1,
                        .operator_stride = sizeof(opmux_schema_text)};
  return OPMUX_OK;
}
