/* A plugin that needs an undefined symbol. */
#include <opmux/abi.h>

int32_t nobody_defines_this(void);

OPMUX_PLUGIN_ENTRY(unresolved) {
  (void)host;
  (void)out;
  return nobody_defines_this();
}
