/* A plugin with an operator that writes the number of a library that it brings with it. */
#include <opmux/abi.h>

int brought_number(void);

static int32_t run(void* user_data, const opmux_call* call) {
  const opmux_tensor* y = call->args[0].value.tensor;
  (void)user_data;
  *(float*)((char*)y->data + y->byte_offset) = (float)brought_number();
  return OPMUX_OK;
}

static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                    .op = OPMUX_STR("brings.number"),
                                    .variant = OPMUX_STR("v1"),
                                    .priority = -1,
                                    .run = run}};
static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("brings"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("stranger"),
                                          .priority = -1,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof(opmux_impl)}};
static const opmux_schema_text operators[] = {
    {sizeof(opmux_schema_text), 0, OPMUX_STR("brings.number(out Tensor y[N])")}};

OPMUX_PLUGIN_ENTRY(brings) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("brings");
  out->version = opmux_str_of("1");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
  return OPMUX_OK;
}
