/* The smallest plugin; LEAK exports an extra symbol and MUTE removes the entry function. */
#include <opmux/abi.h>

#ifdef LEAK
OPMUX_EXPORT int leaked_symbol(void);
OPMUX_EXPORT int leaked_symbol(void) { return 1; }
#endif

#ifndef MUTE
OPMUX_PLUGIN_ENTRY(minimal) {
  static const opmux_str name = OPMUX_STR("minimal");
  (void)host;
  out->struct_size = sizeof *out < out->struct_size ? sizeof *out : out->struct_size;
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = name;
  return OPMUX_OK;
}
#else
extern int kept_private;
int kept_private = 1;
#endif
