/* Calls an undefined function; with lazy binding, this is detected only at the first call. */
#include "copying.h"

void no_library_defines_this(void);

static int32_t run(void* user_data, const opmux_call* call) {
  no_library_defines_this();
  return copy(user_data, call);
}

OPMUX_PLUGIN_ENTRY(unresolved) {
  static opmux_impl impl;
  static opmux_backend backend;
  static opmux_schema_text schema;
  (void)host;
  impl = copying_impl("defect.copy", COPY_SCHEMA("defect"));
  impl.run = run;
  backend = copying_backend(NAME, &impl);
  schema = copying_schema(COPY_SCHEMA("defect"));
  fill_plugin(out, NAME, &backend, &schema);
  return OPMUX_OK;
}
