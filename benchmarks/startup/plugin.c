/* A plugin with 32 implementations. The benchmark makes 64 copies of the library and replaces each
   "zz00" in a copy by another number. */
#include <opmux/abi.h>

static int32_t run(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_OK;
}

#define FOUR(x, n) x(n##0) x(n##1) x(n##2) x(n##3)
#define ALL(x) \
  FOUR(x, 0) FOUR(x, 1) FOUR(x, 2) FOUR(x, 3) FOUR(x, 4) FOUR(x, 5) FOUR(x, 6) FOUR(x, 7)

#define IMPL(n)                       \
  {.struct_size = sizeof(opmux_impl), \
   .op = OPMUX_STR("zz00.op" #n),     \
   .variant = OPMUX_STR("v1"),        \
   .priority = -1,                    \
   .run = run},
#define SCHEMA(n) \
  {sizeof(opmux_schema_text), 0, OPMUX_STR("zz00.op" #n "(out Tensor y[N], Tensor x[N])")},

OPMUX_PLUGIN_ENTRY(startup) {
  static const opmux_impl impls[] = {ALL(IMPL)};
  static const opmux_schema_text operators[] = {ALL(SCHEMA)};
  static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                            .name = OPMUX_STR("zz00"),
                                            .kind = OPMUX_KIND_VENDOR,
                                            .device_type = OPMUX_DEVICE_CPU,
                                            .vendor = OPMUX_STR("zz00"),
                                            .priority = -1,
                                            .impls = impls,
                                            .impl_count = sizeof(impls) / sizeof(impls[0]),
                                            .impl_stride = sizeof(opmux_impl)}};
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of("zz00");
  out->version = opmux_str_of("1");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = sizeof(operators) / sizeof(operators[0]);
  out->operator_stride = sizeof(opmux_schema_text);
  return OPMUX_OK;
}
