/* A plugin that declares another major version of the ABI. */
#include <opmux/abi.h>

OPMUX_PLUGIN_ENTRY(wrong_major) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR + 1;
  out->name = opmux_str_of("wrong_major");
  return OPMUX_OK;
}
