/* A plugin whose code may be unloaded when it is no longer referenced. */
#include <opmux/abi.h>

static int32_t run(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_OK;
}

static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                    .op = OPMUX_STR("goes.away"),
                                    .variant = OPMUX_STR("v1"),
                                    .priority = -1,
                                    .run = run}};
static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("goes"),
                                          .kind = OPMUX_KIND_DEFAULT,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .priority = -1,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof(opmux_impl)}};
static const opmux_schema_text operators[] = {
    {sizeof(opmux_schema_text), 0, OPMUX_STR("goes.away(out Tensor y[N], Tensor x[N])")}};

OPMUX_PLUGIN_ENTRY(goes) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of("goes");
  out->flags = OPMUX_PLUGIN_UNLOADABLE;
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
  return OPMUX_OK;
}
