/* A plugin in plain C: doubles a vector. */
#include <opmux/abi.h>

static int32_t run(void* state, const opmux_call* call) {
  const opmux_tensor* y = call->args[0].value.tensor;
  const opmux_tensor* x = call->args[1].value.tensor;
  int64_t i;
  (void)state;
  for (i = 0; i < x->shape[0]; ++i) ((float*)y->data)[i] = 2.0f * ((const float*)x->data)[i];
  return OPMUX_OK;
}

static const opmux_dim_rule rules[] = {
    {sizeof(opmux_dim_rule), OPMUX_STR("N"), OPMUX_MULTIPLE_OF, 2}};

static const opmux_caps caps = {.struct_size = sizeof(opmux_caps),
                                .dims = rules,
                                .dim_count = 1,
                                .dim_stride = sizeof(opmux_dim_rule)};

static const opmux_impl impls[] = {
    {.struct_size = sizeof(opmux_impl),
     .op = OPMUX_STR("tiny.twice"),
     .variant = OPMUX_STR("plain"),
     .signature = OPMUX_STR("tiny.twice(out Tensor y[N], Tensor x[N])"),
     .priority = -1,
     .caps = &caps,
     .run = run}};

static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("tiny"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("tiny"),
                                          .priority = -1,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof(opmux_impl)}};

OPMUX_PLUGIN_ENTRY(tiny) {
  (void)host;
  if (out->struct_size < sizeof *out) return OPMUX_INVALID_ARGUMENT;
  out->struct_size = sizeof *out;
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("tiny");
  out->version = opmux_str_of("1");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  return OPMUX_OK;
}
