/* A plugin whose backends answer points: "wide" knows tile sizes of the CPU alone, "odd" answers
   with a value of another type, "off" starts switched off. */
#include <opmux/abi.h>

static int32_t tile(void* user_data, const opmux_arg* args, uint32_t count, opmux_arg* answer) {
  (void)user_data;
  if (count != 1 || (int32_t)args[0].value.i64 != OPMUX_DEVICE_CPU) return OPMUX_DECLINED;
  answer->tag = OPMUX_ARG_I64;
  answer->value.i64 = 128;
  return OPMUX_OK;
}

static int32_t text(void* user_data, const opmux_arg* args, uint32_t count, opmux_arg* answer) {
  (void)user_data;
  (void)args;
  (void)count;
  answer->tag = OPMUX_ARG_STR;
  answer->value.list.data = "large";
  answer->value.list.size = 5;
  return OPMUX_OK;
}

static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("wide"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("acme"),
                                          .priority = 120},
                                         {.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("odd"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("acme"),
                                          .priority = 900},
                                         {.struct_size = sizeof(opmux_backend),
                                          .flags = OPMUX_BACKEND_DEFAULT_OFF,
                                          .name = OPMUX_STR("off"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("acme"),
                                          .priority = 500}};
#define TILE OPMUX_STR("gemm.tile_n(Device) -> int")
static const opmux_point points[] = {
    {sizeof(opmux_point), 0, TILE, OPMUX_STR("wide"), NULL, tile},
    {sizeof(opmux_point), 0, TILE, OPMUX_STR("odd"), NULL, text},
    {sizeof(opmux_point), 0, TILE, OPMUX_STR("off"), NULL, tile},
    {sizeof(opmux_point), 0, OPMUX_STR("acme.size(int, float, bool, str) -> str"),
     OPMUX_STR("wide"), NULL, text}};

OPMUX_PLUGIN_ENTRY(answers) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("answers");
  out->version = opmux_str_of("1.0");
  out->backends = backends;
  out->backend_count = sizeof backends / sizeof *backends;
  out->backend_stride = sizeof(opmux_backend);
  out->points = points;
  out->point_count = sizeof points / sizeof *points;
  out->point_stride = sizeof(opmux_point);
  return OPMUX_OK;
}
