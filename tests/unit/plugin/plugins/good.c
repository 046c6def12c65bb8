/* A valid plugin: one backend, one implementation, one operator and one answer. */
#include <opmux/abi.h>

static int started = 0;

static int32_t run(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_OK;
}

static int32_t tile(void* user_data, const opmux_arg* args, uint32_t count, opmux_arg* answer) {
  (void)user_data;
  (void)args;
  (void)count;
  answer->tag = OPMUX_ARG_I64;
  answer->value.i64 = 64;
  return OPMUX_OK;
}

/* Reports the number of init calls through its reason. */
static int32_t is_available(void* user_data, opmux_error* why) {
  (void)user_data;
  why->text[0] = (char)('0' + started);
  why->text_size = 1;
  return OPMUX_DECLINED;
}

static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  (void)user_data;
  (void)error;
  ++started;
  host->log(host->user_data, 1, opmux_str_of("good plugin starts"));
  return OPMUX_OK;
}

static void shutdown(void* user_data) {
  (void)user_data;
  --started;
}

static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                    .op = OPMUX_STR("good.swish"),
                                    .variant = OPMUX_STR("v1"),
                                    .priority = -1,
                                    .run = run}};
static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("good"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("good"),
                                          .priority = -1,
                                          .is_available = is_available,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof(opmux_impl)}};
static const opmux_schema_text operators[] = {
    {sizeof(opmux_schema_text), 0, OPMUX_STR("good.swish(out Tensor y[N], Tensor x[N])")}};
static const opmux_point points[] = {
    {sizeof(opmux_point), 0, OPMUX_STR("tile() -> int"), OPMUX_STR("good"), NULL, tile}};

OPMUX_PLUGIN_ENTRY(good) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("good");
  out->version = opmux_str_of("1.2");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
  out->points = points;
  out->point_count = 1;
  out->point_stride = sizeof(opmux_point);
  out->init = init;
  out->shutdown = shutdown;
  return OPMUX_OK;
}
