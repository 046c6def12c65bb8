/* A plugin that is valid except for a missing dependency or an extra exported symbol. */
#include <opmux/abi.h>

#include <stddef.h>

#if defined(DEED_MISSING_LIBRARY)
int missing_answer(void);
#elif defined(DEED_MISSING_SYMBOL) && !defined(TWIN)
int nobody_defines_this(void);
#elif defined(DEED_INTERPOSE)
#ifdef TWIN
static void* own_malloc(size_t size) {
  static char memory[64];
  return size <= sizeof(memory) ? memory : NULL;
}
#else
OPMUX_EXPORT void* malloc(size_t size);
OPMUX_EXPORT void* malloc(size_t size) {
  (void)size;
  return NULL;
}
#endif
#endif

OPMUX_PLUGIN_ENTRY(hostile) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of(NAME);
#if defined(DEED_MISSING_LIBRARY)
  return missing_answer();
#elif defined(DEED_MISSING_SYMBOL) && !defined(TWIN)
  return nobody_defines_this();
#elif defined(DEED_INTERPOSE) && defined(TWIN)
  return own_malloc(8) != NULL ? OPMUX_OK : OPMUX_FAILED;
#elif defined(DEED_NEXT_SYMBOL)
  return OPMUX_OK;
#else
  return OPMUX_OK;
#endif
}
