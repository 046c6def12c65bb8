/* A plugin whose init fails. */
#include <opmux/abi.h>

#include <string.h>

static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  static const char text[] = "driver 3.1 is too old";
  (void)user_data;
  (void)host;
  memcpy(error->text, text, sizeof(text) - 1);
  error->text_size = sizeof(text) - 1;
  return OPMUX_FAILED;
}

OPMUX_PLUGIN_ENTRY(init_fails) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of("init_fails");
  out->init = init;
  return OPMUX_OK;
}
