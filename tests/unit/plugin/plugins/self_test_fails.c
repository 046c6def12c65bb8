/* A plugin that finds out in its self test that it does not work here. */
#include <opmux/abi.h>

#include <string.h>

static int32_t self_test(void* user_data, opmux_error* error) {
  static const char text[] = "sums are wrong on this device";
  (void)user_data;
  memcpy(error->text, text, sizeof(text) - 1);
  error->text_size = sizeof(text) - 1;
  return OPMUX_FAILED;
}

OPMUX_PLUGIN_ENTRY(self_test_fails) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of("self_test_fails");
  out->self_test = self_test;
  return OPMUX_OK;
}
